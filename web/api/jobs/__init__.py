"""The REST API of jobs: request, list, follow and operate them."""

from tailrace.web.api.jobs import chain, flows, handlers, jobs, log, operations, queues, replay

for module in (log, operations, replay):
    jobs.router.add_router("", module.router)

routers = {
    "/jobs": jobs.router,
    "/flows": flows.router,
    "/handlers": handlers.router,
    "/queues": queues.router,
    "/events": chain.router,
}
scopes = {
    "jobs:read": "see jobs, flows, queues and handlers, with the permissions of the user",
    "jobs:write": "request jobs of the handlers that the user may run",
    "jobs:operate": "cancel, retry, replay and pause jobs and flows, as far as the user may",
}
