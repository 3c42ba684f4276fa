"""The response with a private file."""

from django.http import HttpResponse


def file_response(content: bytes, content_type: str, name: str) -> HttpResponse:
    """Return a download that browsers store nowhere and never run as a page."""
    return HttpResponse(
        content,
        content_type=content_type,
        headers={
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "private, no-store",
        },
    )
