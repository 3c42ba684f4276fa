"""The response for the download of a private file."""

from django.http import HttpResponse
from django.utils.http import content_disposition_header

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import StoredFile
from tailrace.net.sanitize import one_line


def file_response(file: StoredFile, content_type: str, name: str) -> HttpResponse:
    """Return a download that browsers neither store nor run as a page. Raises FileNotFoundError."""
    return HttpResponse(
        storage.read(file),
        content_type=content_type,
        headers={
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Content-Disposition": content_disposition_header(True, one_line(name)),
            "Cache-Control": "private, no-store",
        },
    )
