"""The API of imports, points and timelines."""

from tailrace.domains.timeline.api import imports, points, timeline

routers = {
    "/imports": imports.router,
    "/points": points.router,
    "/timeline": timeline.router,
}
scopes = {
    "timeline:read": "read your timeline and your imports",
    "timeline:import": "import, promote, cancel and undo files of points",
    "timeline:points": "add points to your timeline, e.g. from a phone",
}
