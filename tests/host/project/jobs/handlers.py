import time

from django.db.models import F
from events.event_types import VacancyAdded
from jobs.models import Job
from pydantic import BaseModel
from tailrace.jobs.handler import Handler


class Announce(Handler):
    """Announce a new vacancy."""

    name = "jobs.announce"
    on = [VacancyAdded]

    def handle(self, job):
        row = Job.objects.filter(pk=job.event.payload.vacancy)
        row.update(announced=F("announced") + 1)
        return {"title": job.event.payload.title}


class Wait(Handler):
    """Wait, as a slow call of another service does."""

    name = "jobs.wait"
    claim_timeout = 5

    class Payload(BaseModel):
        seconds: float

    def handle(self, job):
        word = "a secret of a local variable"
        time.sleep(job.payload.seconds)
        return len(word)
