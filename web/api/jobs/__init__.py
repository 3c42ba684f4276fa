"""The REST API of jobs: request, list, follow and operate them."""

from web.api.jobs import handlers, jobs, operations, replay

jobs.router.add_router("", operations.router)
jobs.router.add_router("", replay.router)

routers = {"/jobs": jobs.router, "/handlers": handlers.router}
scopes = {
    "jobs:read": "see jobs and handlers, with the permissions of the user",
    "jobs:write": "request jobs of the handlers that the user may run",
    "jobs:operate": "cancel, retry and replay jobs, with the permissions of the user",
}
