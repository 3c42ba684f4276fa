"""The API of protection."""

from domains.protection.api import alerts

routers = {
    "/protection/alerts": alerts.router,
}
scopes = {
    "protection:read": "read your watchlist, exposures and alerts; watched values are masked",
    "protection:write": "change your watchlist and exposures, and request scans",
}
