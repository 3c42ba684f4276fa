"""The REST API of flows: list them, read their graphs and operate them."""

from tailrace.web.api.jobs.flows import flows, operations

flows.router.add_router("", operations.router)
router = flows.router
