"""Errors of imports. Their messages are written for the user."""


class ImportRejected(ValueError):
    """The upload is rejected, and nothing of it is kept. `field` is the invalid field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


class FileTooLarge(ImportRejected):
    pass


class QuotaExceeded(ImportRejected):
    """The request would exceed a quota of the user."""


class StorageUnavailable(OSError):
    """The storage cannot write files now."""


class NotNow(Exception):
    """The state of the import does not allow the decision; the message states the reason."""
