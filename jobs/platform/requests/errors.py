"""Errors of requests for jobs."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in one field of a request; the path is empty if it is about the whole request."""

    path: tuple[str | int, ...]
    detail: str


class InvalidRequest(ValueError):
    """The request has errors, which are in `faults`."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(fault.detail for fault in faults))
        self.faults = list(faults)


class NotPermitted(PermissionError):
    """Jobs of the handler cannot be requested, or this user lacks `permission`."""

    def __init__(self, detail: str, permission: str | None = None) -> None:
        super().__init__(detail)
        self.permission = permission


class KeyReused(ValueError):
    """The Idempotency-Key was used with another request before, which made `what`."""

    def __init__(self, key: str, what: str = "") -> None:
        where = f" ({what})" if what else ""
        super().__init__(
            f"the Idempotency-Key {key!r} was used for another request{where}; send each request"
            " with its own key"
        )


class KeyInUse(RuntimeError):
    """Another request with this Idempotency-Key is still being processed."""
