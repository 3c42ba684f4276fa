"""The API of protection."""

from tailrace.domains.protection.api import (
    alerts,
    exposures,
    properties,
    removals,
    reports,
    scans,
    voices,
    watchlist,
)

routers = {
    "/protection/alerts": alerts.router,
    "/protection/exposures": exposures.router,
    "/protection/properties": properties.router,
    "/protection/scans": scans.router,
    "/protection/watchlist": watchlist.router,
    "/protection/brokers": removals.brokers,
    "/protection/removals": removals.router,
    "/protection/reports": reports.router,
    "/protection/voices": voices.voices,
    "/protection/recordings": voices.recordings,
}
scopes = {
    "protection:read": (
        "read your watchlist (masked), exposures, properties, alerts, removals, reports and voices"
    ),
    "protection:write": (
        "change your watchlist, properties, exposures and voices, and request scans, removals and"
        " reports"
    ),
}
