"""Errors of requests to an outside source, which are sent within its circuit breaker and its rate
limit."""


class SourceError(Exception):
    """The source gave no usable answer; `reason` states why. The text of the error begins with the
    name `source`, if it has one."""

    def __init__(
        self,
        reason: str,
        after: float | None = None,
        *,
        source: str = "",
        was_asked: bool = True,
        status: int = 0,
    ) -> None:
        super().__init__(f"{source}: {reason}" if source else reason)
        self.source, self.reason, self.status = source, reason, status
        self.after = after
        """Seconds until it may be asked again, or None if that is unknown."""
        self.was_asked = was_asked
        """Whether a request was sent. False if the circuit breaker was open, or the rate limit was
        used up."""


class SourceAway(SourceError):
    """The source cannot answer now: it is unavailable, overloaded, or answers nonsense."""


class SourceBusy(SourceError):
    """The rate limit of the source allowed no request in time. No request was sent."""

    after: float

    def __init__(self, reason: str, after: float, *, source: str = "") -> None:
        super().__init__(reason, after, source=source, was_asked=False)


class SourceRefuses(SourceError):
    """The source refuses the request, or nothing may be sent to its address: somebody has to change
    its settings. With the status 400 it does not accept this one value."""
