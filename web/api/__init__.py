"""The API's framework, and the API of jobs."""

from tailrace.web.api.jobs import routers, scopes

__all__ = ["routers", "scopes"]
