"""The API of photos and gatherings."""

from tailrace.domains.photos.api import gatherings, photos

routers = {"/photos": photos.router, "/gatherings": gatherings.router}
scopes = {
    "photos:read": "see photos and gatherings",
    "photos:write": "upload photos",
    "photos:delete": "delete photos",
}
