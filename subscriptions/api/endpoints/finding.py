from django.http import HttpRequest

from tailrace.subscriptions.models import Endpoint
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.problems import find_row

AUTH = Needs("endpoints")


def find_endpoint(request: HttpRequest, id: int) -> Endpoint:
    rows = Endpoint.objects.select_related("user").filter(user=caller(request).user)
    return find_row(rows, id, "endpoint")
