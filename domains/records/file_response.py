"""The response with a deposited file."""

from django.http import FileResponse

from tailrace.domains.records.depositions import storage
from tailrace.domains.records.models import DepositionFile


def file_response(file: DepositionFile) -> FileResponse:
    """Return a download that browsers store nowhere and never run as a page; raises
    FileNotFoundError."""
    return FileResponse(
        storage.open_file(file.key),
        as_attachment=True,
        filename=file.name,
        content_type="application/octet-stream",
        headers={
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Cache-Control": "private, no-store",
        },
    )
