"""Why a request for a job is refused."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one place of a request; the path is empty for the whole of it."""

    path: tuple[str | int, ...]
    detail: str


class InvalidRequest(ValueError):
    """The request has errors, each at its place."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(fault.detail for fault in faults))
        self.faults = list(faults)


class NotPermitted(PermissionError):
    """The handler takes no requests, or not those of this user; `permission` is what they lack."""

    def __init__(self, detail: str, permission: str | None = None) -> None:
        super().__init__(detail)
        self.permission = permission


class KeyReused(ValueError):
    """The Idempotency-Key came with another request before."""


class KeyInUse(RuntimeError):
    """Another request with this Idempotency-Key is still being worked on."""
