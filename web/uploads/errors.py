"""Errors of uploads. Nothing of a rejected upload is kept."""

from typing import ClassVar


class UploadRejected(ValueError):
    """The upload is not valid.

    `errors` are pairs of a field and a message, which states what to send instead. The API answers
    with a problem that has this `status` and `kind`.
    """

    status: ClassVar[int] = 422
    kind: ClassVar[str] = "invalid"

    def __init__(self, *errors: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in errors))
        self.errors = errors


class FileTooLarge(UploadRejected):
    status, kind = 413, ""


class QuotaExceeded(UploadRejected):
    status, kind = 409, "too-many"


class StorageUnavailable(OSError):
    def __init__(self, error: OSError) -> None:
        super().__init__(f"files cannot be stored now: {error.strerror or error}")
