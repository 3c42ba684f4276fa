"""What the code around a `publish` call knows of its circumstances.

The engine sets `cause` and `trace_parent` while a handler runs, a web request sets `actor` and
`trace_parent`; an event that does not say otherwise takes them over.
"""

from contextvars import ContextVar

cause: ContextVar[int | None] = ContextVar("cause", default=None)
actor: ContextVar[str] = ContextVar("actor", default="")
trace_parent: ContextVar[str] = ContextVar("trace_parent", default="")
