"""Recognise an upload that was sent before, by its Idempotency-Key."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile

from tailrace.domains.photos.models import Photo, Upload
from tailrace.domains.photos.uploads.errors import FieldError, UploadRejected

HEADER = "Idempotency-Key"
MAX_LENGTH = 200


def check(key: str) -> None:
    """Raise UploadRejected if the key is too long or has a NUL character."""
    if len(key) > MAX_LENGTH or "\0" in key:
        message = f"must have at most {MAX_LENGTH} characters, and no NUL"
        raise UploadRejected(FieldError(HEADER, message))


def fingerprint(values: Sequence[Any], file: UploadedFile | None) -> str:
    """Return a hash of the fields and the file of a request."""
    digest = hashlib.sha256(json.dumps(values).encode())
    if file is not None:
        for chunk in file.chunks():
            digest.update(chunk)
    return digest.hexdigest()


def previous_photo(user: User, key: str, fingerprint: str) -> Photo | None:
    """Return the photo that the user uploaded with this key, or None.

    Raises UploadRejected if the key was used with another picture or other fields.
    """
    upload = (
        Upload.objects.filter(user=user, idempotency_key=key, photo__isnull=False)
        .select_related("photo")
        .first()
    )
    if upload is None or upload.photo is None:
        return None
    if upload.fingerprint != fingerprint:
        message = f"was used for another upload (photo {upload.photo_id}); send a new key"
        raise UploadRejected(FieldError(HEADER, message))
    return upload.photo
