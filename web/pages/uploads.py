"""Pages with a form that sends a file, and refuse one that is too large before they read it."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from tailrace.web.pages.frame import PersonRequest, View, for_person


def upload_page(max_bytes: Callable[[], int], too_large: View) -> Callable[[View], View]:
    """Decorate the view of such a page, for people who have signed in: GET shows it, POST sends
    the file.

    `max_bytes` returns how long a request may be, `too_large` answers one that is longer.
    """

    def decorate(view: View) -> View:
        checked = csrf_protect(view)

        @wraps(view)
        def page(request: PersonRequest) -> HttpResponseBase:
            if int(request.META.get("CONTENT_LENGTH") or 0) > max_bytes():
                return too_large(request)
            return checked(request)

        # The token is looked for in the body, so it is checked after the body's length.
        return csrf_exempt(require_http_methods(["GET", "HEAD", "POST"])(for_person(page)))

    return decorate
