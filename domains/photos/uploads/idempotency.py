"""Recognise an upload that was sent before, by its Idempotency-Key."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile

from tailrace.domains.photos.models import Photo, Upload
from tailrace.jobs.platform.requests.errors import KeyReused


def fingerprint(values: Sequence[Any], file: UploadedFile | None) -> str:
    """Return a hash of the fields and the file of a request."""
    digest = hashlib.sha256(json.dumps(values).encode())
    if file is not None:
        for chunk in file.chunks():
            digest.update(chunk)
    return digest.hexdigest()


def previous_photo(user: User, key: str, fingerprint: str) -> Photo | None:
    """Return the photo that the user uploaded with this key, or None.

    Raises KeyReused if the key was used with another picture or other fields.
    """
    upload = (
        Upload.objects.filter(user=user, idempotency_key=key, photo__isnull=False)
        .select_related("photo")
        .first()
    )
    if upload is None or upload.photo is None:
        return None
    if upload.fingerprint != fingerprint:
        raise KeyReused(key, f"photo {upload.photo_id}")
    return upload.photo
