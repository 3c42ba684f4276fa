"""The response with a file that a user uploaded, or that was made for one user."""

from typing import IO

from django.http import FileResponse

from tailrace.net.sanitize import one_line


def download_response(
    file: IO[bytes], name: str, content_type: str = "application/octet-stream"
) -> FileResponse:
    """Return a download of the open file that browsers neither store nor run as a page."""
    return FileResponse(
        file,
        as_attachment=True,
        filename=one_line(name),
        content_type=content_type,
        headers={
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Cache-Control": "private, no-store",
        },
    )
