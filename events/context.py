"""Defaults for the fields of events that are published in this context.

The engine sets `cause` and `trace_parent` while a handler runs, and a web request sets `actor` and
`trace_parent`. An event without values of its own gets these.
"""

from contextvars import ContextVar

cause: ContextVar[int | None] = ContextVar("cause", default=None)
actor: ContextVar[str] = ContextVar("actor", default="")
trace_parent: ContextVar[str] = ContextVar("trace_parent", default="")
