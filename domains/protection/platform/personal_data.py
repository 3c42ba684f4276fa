"""The personal data that protection stores."""

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.domains.protection.event_types import SOURCE, AlertEvent
from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import (
    Alert,
    AlertPause,
    Exposure,
    Recording,
    RemovalRequest,
    Report,
    VoiceEnrolment,
    WatchedProperty,
    WatchlistItem,
)
from tailrace.events.privacy.erase import erase
from tailrace.jobs.operations.cancel import cancel
from tailrace.web.accounts.personal_data import BATCH, PersonalData


class Alerts(PersonalData):
    """Your alerts and the content of their events. The events remain, without your name."""

    def delete(self, user: User) -> int:
        alerts = list(Alert.objects.filter(user=user)[:BATCH])
        source_ids = [id for alert in alerts for id in AlertEvent.source_ids(alert)]
        erase(SOURCE, source_ids, keep=["alert"])
        return Alert.objects.filter(pk__in=[alert.pk for alert in alerts]).delete()[0]


class Protection(PersonalData):
    """Your watched values and their exposures."""

    rows = {Exposure: "user", WatchlistItem: "user", AlertPause: "user"}


class Removals(PersonalData):
    """Your removal requests at data brokers, with the data that they contain about you."""

    def delete(self, user: User) -> int:
        with transaction.atomic():
            rows = RemovalRequest.objects.select_for_update().filter(user=user)
            batch = dict(rows.order_by("pk").values_list("pk", "job_id")[:BATCH])
            if job_ids := [job_id for job_id in batch.values() if job_id is not None]:
                cancel(job_ids, reason="the account was deleted")
            return RemovalRequest.objects.filter(pk__in=batch).delete()[0]


class Properties(PersonalData):
    """Your watched properties, with their public records and changes."""

    rows = {WatchedProperty: "user"}


class Reports(PersonalData):
    """Your protection reports."""

    def delete(self, user: User) -> int:
        return storage.delete_owners(Report.objects.filter(user=user)[:BATCH])


class Voices(PersonalData):
    """Your enrolled voices and your recordings."""

    def delete(self, user: User) -> int:
        voices = VoiceEnrolment.objects.filter(user=user)[:BATCH]
        recordings = Recording.objects.filter(user=user)[:BATCH]
        return storage.delete_owners(voices) + storage.delete_owners(recordings)
