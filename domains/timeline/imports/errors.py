"""Why something was not done. The message is a sentence for the user."""


class ImportRejected(ValueError):
    """The upload is not accepted; nothing of it is kept. `field` is the field that is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


class FileTooLarge(ImportRejected):
    pass


class QuotaExceeded(ImportRejected):
    """The user has as much as one may have."""


class StorageUnavailable(OSError):
    """Files cannot be written now."""


class NotNow(Exception):
    """The state of the import does not allow it; the message says what does."""
