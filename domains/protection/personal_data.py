"""What protection stores of a person."""

from domains.protection.models import Alert, AlertPause, Exposure, WatchlistItem
from web.accounts.personal_data import PersonalData


class Protection(PersonalData):
    """The values that you have watched, where they were exposed, and your alerts."""

    rows = {Exposure: "user", WatchlistItem: "user", Alert: "user", AlertPause: "user"}
