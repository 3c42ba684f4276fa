"""The API of protection."""

from domains.protection.api import alerts, exposures, scans, watchlist

routers = {
    "/protection/alerts": alerts.router,
    "/protection/exposures": exposures.router,
    "/protection/scans": scans.router,
    "/protection/watchlist": watchlist.router,
}
scopes = {
    "protection:read": "read your watchlist, exposures and alerts; watched values are masked",
    "protection:write": "change your watchlist and exposures, and request scans",
}
