"""The API of imports, points, timelines and devices."""

from tailrace.domains.timeline.api import devices, imports, points, timeline

routers = {
    "/imports": imports.router,
    "/points": points.router,
    "/timeline": timeline.router,
    "/timeline/devices": devices.router,
}
scopes = {
    "timeline:read": "read your timeline and your imports",
    "timeline:import": "import, promote, cancel and undo files of points",
    "timeline:devices": "rename, merge and delete your devices, with their points",
    "timeline:points": "add points to your timeline, e.g. from a phone",
}
