from tailrace.domains.protection.models.alert import Alert, AlertFinding, AlertPause, Severity
from tailrace.domains.protection.models.breach import Breach, BreachFeed, Exposure
from tailrace.domains.protection.models.property import (
    Borough,
    ChangeKind,
    DeedFeed,
    PropertyChange,
    PropertySnapshot,
    WatchedProperty,
)
from tailrace.domains.protection.models.removal import RemovalChange, RemovalRequest, RemovalState
from tailrace.domains.protection.models.report import Report
from tailrace.domains.protection.models.stored_file import StoredFile
from tailrace.domains.protection.models.voice import Recording, VoiceEnrolment
from tailrace.domains.protection.models.watchlist import ItemScan, Kind, WatchlistItem

__all__ = [
    "Alert", "AlertFinding", "AlertPause", "Borough", "Breach", "BreachFeed", "ChangeKind",
    "DeedFeed", "Exposure", "ItemScan", "Kind", "PropertyChange", "PropertySnapshot", "Recording",
    "RemovalChange", "RemovalRequest", "RemovalState", "Report", "Severity", "StoredFile",
    "VoiceEnrolment", "WatchedProperty", "WatchlistItem",
]  # fmt: skip
