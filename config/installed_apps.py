"""The apps of Tailrace: the one list that a new domain is added to."""

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
"""A new domain is one more line here. Its folder brings everything else: docs/imports.md."""
