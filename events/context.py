"""The default values of an event's fields. The engine sets `cause` and `trace_parent` while a
handler runs; a web request sets `actor` and `trace_parent`."""

from contextvars import ContextVar

cause: ContextVar[int | None] = ContextVar("cause", default=None)
actor: ContextVar[str] = ContextVar("actor", default="")
trace_parent: ContextVar[str] = ContextVar("trace_parent", default="")
