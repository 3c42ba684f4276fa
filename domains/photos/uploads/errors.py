"""Errors of uploads. Nothing of a failed upload is kept."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field; the message states what to send instead."""

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
    """The upload would exceed a quota of the user."""


class StorageKeyTaken(UploadRejected):
    """Another photo has this storage key."""


class DecoderBusy(Exception):
    """Too many pictures are being decoded now; a later attempt may succeed."""

    retry_seconds = 2


class StorageUnavailable(OSError):
    """The storage cannot write pictures now."""
