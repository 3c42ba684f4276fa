"""Pages that upload a file. A file that is too large is refused before it is read."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from tailrace.web.pages.frame import PersonRequest, View, for_person


def upload_page(max_bytes: Callable[[], int], too_large: View) -> Callable[[View], View]:
    """Decorate the view of an upload page for signed-in users: GET shows the form, POST uploads.

    `max_bytes` returns the maximum length of a request; `too_large` is the view for longer ones.
    """

    def decorate(view: View) -> View:
        checked = csrf_protect(view)

        @wraps(view)
        def page(request: PersonRequest) -> HttpResponseBase:
            if int(request.META.get("CONTENT_LENGTH") or 0) > max_bytes():
                return too_large(request)
            return checked(request)

        # The CSRF check reads the body, so it comes after the check of the body's length.
        return csrf_exempt(require_http_methods(["GET", "HEAD", "POST"])(for_person(page)))

    return decorate
