import json

from django.db import transaction
from django.http import HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from events.event_types import VacancyAdded
from jobs.models import Job
from jobs.tasks import count_words
from tailrace.events.publish import NewEvent, apublish, publish


def overview(request):
    return HttpResponse("the page that this project calls overview")


@transaction.non_atomic_requests
async def add_from_async_view(request):
    payload = {"vacancy": 0, "title": "from an async view"}
    [event] = await apublish(NewEvent(VacancyAdded, payload))
    return JsonResponse({"event": event.id})


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
