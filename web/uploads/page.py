"""Pages that upload a file. A file that is too large is refused before it is read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

from django import forms
from django.http import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from tailrace.web.pages.forms import sentence
from tailrace.web.pages.frame import PersonRequest, View, for_person
from tailrace.web.uploads.errors import StorageUnavailable, UploadRejected
from tailrace.web.uploads.limits import FORM_BYTES


def upload_page(
    max_bytes: Callable[[], int], too_large: View, form_bytes: int = FORM_BYTES
) -> Callable[[View], View]:
    """Decorate the view of an upload page for signed-in users: GET shows the form, POST uploads.

    `max_bytes` returns the maximum bytes of the files; `too_large` is the view for longer requests.
    """

    def decorate(view: View) -> View:
        checked = csrf_protect(view)

        @wraps(view)
        def page(request: PersonRequest) -> HttpResponseBase:
            if int(request.META.get("CONTENT_LENGTH") or 0) > max_bytes() + form_bytes:
                return too_large(request)
            return checked(request)

        # The CSRF check reads the body, so it comes after the check of the body's length.
        return csrf_exempt(require_http_methods(["GET", "HEAD", "POST"])(for_person(page)))

    return decorate


@contextmanager
def errors_in(form: forms.BaseForm, **fields: str) -> Iterator[None]:
    """Add the errors of an upload in the block to the form.

    `fields` are the names of fields that have another name in the form.
    """
    try:
        yield
    except UploadRejected as error:
        for field, message in error.errors:
            name = fields.get(field, field)
            form.add_error(name if name in form.fields else None, sentence(message))
    except StorageUnavailable as error:
        form.add_error(None, f"{sentence(error)} Try again later.")
