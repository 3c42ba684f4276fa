from domains.protection.models.alert import Alert, AlertPause, Severity
from domains.protection.models.breach import Breach, Exposure
from domains.protection.models.removal import RemovalChange, RemovalRequest, RemovalState
from domains.protection.models.watchlist import ItemScan, Kind, WatchlistItem

__all__ = [
    "Alert",
    "AlertPause",
    "Breach",
    "Exposure",
    "ItemScan",
    "Kind",
    "RemovalChange",
    "RemovalRequest",
    "RemovalState",
    "Severity",
    "WatchlistItem",
]
