"""Why an upload was not stored. Nothing of it is kept."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with a field, and what to send instead."""

    field: str
    message: str


class UploadRejected(ValueError):
    """The upload is not valid; `errors` names the fields."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors: Sequence[FieldError] = errors


class FileTooLarge(UploadRejected):
    pass


class QuotaExceeded(UploadRejected):
    """The user has stored as much as one may."""


class StorageKeyTaken(UploadRejected):
    """Another photo has this storage key."""


class DecoderBusy(Exception):
    """Too many pictures are being decoded now; a later try may succeed."""

    retry_seconds = 2


class StorageUnavailable(OSError):
    """Pictures cannot be written now."""
