"""The list of Tailrace's apps."""

APPS = [
    "tailrace.events",
    "tailrace.jobs",
    "tailrace.web",
    "tailrace.subscriptions",
    "tailrace.domains.builds",
    "tailrace.domains.photos",
    "tailrace.domains.timeline",
    "tailrace.domains.protection",
    "tailrace.domains.records",
]
"""To add a domain, add a line here. Everything else is found in its folder: docs/imports.md."""
