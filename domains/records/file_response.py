"""Send a deposited file as an HTTP response."""

from django.http import FileResponse

from tailrace.domains.records.depositions import storage
from tailrace.domains.records.models import DepositionFile


def file_response(file: DepositionFile) -> FileResponse:
    """Return the file as a download that browsers neither cache nor open as a page.

    Raises FileNotFoundError.
    """
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
