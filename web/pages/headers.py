"""Security headers of all responses, error pages included. A view may set its own
Content-Security-Policy or Permissions-Policy. Django's own middleware sets X-Frame-Options,
X-Content-Type-Options, Referrer-Policy and Cross-Origin-Opener-Policy, by Django's defaults."""

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Allows only scripts and styles from files of this site, and none inline."""
PERMISSIONS_POLICY = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer", "browsing-topics", "camera", "display-capture", "gyroscope", "hid",
        "magnetometer", "microphone", "midi", "payment", "serial", "usb",
        "xr-spatial-tracking",
    )
)  # fmt: skip


class SecurityHeaders(MiddlewareMixin):
    """Middleware that sets the headers. It is the outermost one, so that it sees all responses."""

    async_capable = False

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not (settings.DEBUG and response.status_code in (404, 500)):  # Django's debug pages
            response.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return response
