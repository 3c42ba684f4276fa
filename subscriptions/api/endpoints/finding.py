"""Find the endpoint of a request, and convert errors to problems."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.http import HttpRequest

from tailrace.subscriptions.channels.webhook.operations.errors import EndpointError
from tailrace.subscriptions.models import Endpoint
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.problems import Problem, find_row

AUTH = Needs("endpoints")


def find_endpoint(request: HttpRequest, id: int) -> Endpoint:
    rows = Endpoint.objects.select_related("user").filter(user=caller(request).user)
    return find_row(rows, id, "endpoint")


@contextmanager
def conflicts() -> Iterator[None]:
    """Convert an EndpointError to a 409 problem."""
    try:
        yield
    except EndpointError as error:
        raise Problem(409, str(error)) from None
