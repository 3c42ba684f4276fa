"""Errors of submitting depositions and of decisions about them."""


class DepositionRefused(Exception):
    """A field of the deposition is invalid. The message names the problem and how to fix it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field, self.message = field, message


class LimitReached(DepositionRefused):
    """The user has reached the maximum number of depositions, or the maximum size of files."""


class FilesTooLarge(DepositionRefused):
    """The files of the deposition exceed the maximum size."""


class StorageUnavailable(Exception):
    """The storage cannot write files now."""


class NotNow(Exception):
    """The state of the deposition or record does not allow the action, or its reason is invalid."""
