"""The apps of Tailrace: the one list that a new domain is added to."""

APPS = [
    "events",
    "jobs",
    "web",
    "subscriptions",
    "domains.builds",
    "domains.photos",
    "domains.timeline",
    "domains.protection",
    "domains.records",
]
"""A new domain is one more line here. Its folder brings everything else: docs/imports.md."""
