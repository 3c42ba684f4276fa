"""Errors of uploaded photos, beside those of all uploads."""

from tailrace.web.uploads.errors import UploadRejected


class StorageKeyTaken(UploadRejected):
    """Another photo has this storage key."""

    status, kind = 409, "exists"


class DecoderBusy(Exception):
    """Too many pictures are being decoded now; a later attempt may succeed."""

    retry_seconds = 2
