"""The API of protection."""

from domains.protection.api import alerts, exposures, properties, removals, scans, watchlist

routers = {
    "/protection/alerts": alerts.router,
    "/protection/exposures": exposures.router,
    "/protection/properties": properties.router,
    "/protection/scans": scans.router,
    "/protection/watchlist": watchlist.router,
    "/protection/brokers": removals.brokers,
    "/protection/removals": removals.router,
}
scopes = {
    "protection:read": ("read your watchlist (masked), exposures, properties, alerts and removals"),
    "protection:write": (
        "change your watchlist, properties and exposures, and request scans and removals"
    ),
}
