from django.conf import settings

from tailrace.events.publish import Recorded
from tailrace.jobs.handler import ClaimedJob, Handler

from .event_types import Measured


class WarnOfFrost(Handler):
    """Warn of frost."""

    name = "weather.warn_of_frost"
    on = [Measured]

    def wants(self, event: Recorded) -> bool:
        return event.payload.degrees < settings.WEATHER_FROST_DEGREES

    def handle(self, job: ClaimedJob) -> None:
        job.complete("warned")
