from domains.protection.models.alert import Alert, AlertPause, Severity
from domains.protection.models.breach import Breach, Exposure
from domains.protection.models.breach_feed import BreachFeed
from domains.protection.models.property import (
    Borough,
    ChangeKind,
    DeedFeed,
    PropertyChange,
    PropertySnapshot,
    WatchedProperty,
)
from domains.protection.models.removal import RemovalChange, RemovalRequest, RemovalState
from domains.protection.models.report import Report
from domains.protection.models.stored_file import StoredFile
from domains.protection.models.voice import Recording, VoiceEnrolment
from domains.protection.models.watchlist import ItemScan, Kind, WatchlistItem

__all__ = [
    "Alert",
    "AlertPause",
    "Borough",
    "Breach",
    "BreachFeed",
    "ChangeKind",
    "DeedFeed",
    "Exposure",
    "ItemScan",
    "Kind",
    "PropertyChange",
    "PropertySnapshot",
    "Recording",
    "RemovalChange",
    "RemovalRequest",
    "RemovalState",
    "Report",
    "Severity",
    "StoredFile",
    "VoiceEnrolment",
    "WatchedProperty",
    "WatchlistItem",
]
