"""The HTTP response with a photo's picture."""

from django.http import HttpResponse

from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.pictures import storage
from tailrace.domains.photos.uploads.pictures.picture import COPY_TYPE


def picture_response(photo: Photo) -> HttpResponse | None:
    """Return a response with the photo's small copy, or None if the picture is stored elsewhere."""
    copy = storage.read_copy(photo.storage_key)
    headers = {  # They keep browsers from interpreting the picture as a page.
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Content-Disposition": f'inline; filename="photo-{photo.pk}.jpg"',
        "Cache-Control": "private, max-age=3600",
    }
    return None if copy is None else HttpResponse(copy, content_type=COPY_TYPE, headers=headers)
