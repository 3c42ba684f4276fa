"""Errors of requests that are sent within a destination's circuit breaker and its rate limit."""


class RequestError(Exception):
    """The destination gave no usable answer; `reason` states why. The text of the error begins with
    the name `destination`, if it has one."""

    def __init__(
        self,
        reason: str,
        after: float | None = None,
        *,
        destination: str = "",
        was_asked: bool = True,
        status: int = 0,
    ) -> None:
        super().__init__(f"{destination}: {reason}" if destination else reason)
        self.destination, self.reason, self.status = destination, reason, status
        self.after = after
        """Seconds until it may be asked again, or None if that is unknown."""
        self.was_asked = was_asked
        """Whether a request was sent. False if the circuit breaker was open, or the rate limit was
        used up."""


class Unavailable(RequestError):
    """The destination cannot answer now: it is away, overloaded, or its answer is invalid."""


class RateLimited(RequestError):
    """The rate limit of the destination allowed no request in time. No request was sent."""

    after: float

    def __init__(self, reason: str, after: float, *, destination: str = "") -> None:
        super().__init__(reason, after, destination=destination, was_asked=False)


class RequestRefused(RequestError):
    """The destination refuses the request, or nothing may be sent to its address: somebody has to
    change its settings. With the status 400 it does not accept this one value."""
