"""What protection stores of a person."""

from django.contrib.auth.models import User

from domains.protection.event_types import SOURCE, AlertEvent
from domains.protection.models import Alert, AlertPause, Exposure, WatchlistItem
from events.erase import erase
from web.accounts.personal_data import BATCH, PersonalData


class Alerts(PersonalData):
    """Your alerts, and what their events say. That there was an event stays, without your name."""

    def delete(self, user: User) -> int:
        ids = list(Alert.objects.filter(user=user).values_list("pk", flat=True)[:BATCH])
        erase(SOURCE, [AlertEvent.source_id(id) for id in ids], keep=["alert"])
        return Alert.objects.filter(pk__in=ids).delete()[0]


class Protection(PersonalData):
    """The values that you have watched, and where they were exposed."""

    rows = {Exposure: "user", WatchlistItem: "user", AlertPause: "user"}
