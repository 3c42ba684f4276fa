import json

from django.http import HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from events.event_types import VacancyAdded
from jobs.models import Job
from jobs.tasks import count_words
from tailrace.events.publish import NewEvent, publish


def overview(request):
    return HttpResponse("the page that this project calls overview")


@csrf_exempt
def add_vacancy(request):
    """In the transaction of the request: a row, an event, and a task of the project's own."""
    given = json.loads(request.body)
    vacancy = Job.objects.create(title=given["title"])
    publish(NewEvent(VacancyAdded, {"vacancy": vacancy.pk, "title": vacancy.title}))
    if given.get("fails"):
        raise RuntimeError("after everything was written")
    words = count_words.delay_on_commit(vacancy.title)
    return JsonResponse({"id": vacancy.pk, "task": str(words)})
