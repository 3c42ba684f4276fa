"""Pages that upload a file. A file that is too large is refused before it is read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

from django import forms
from django.http import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from tailrace.web.bodies import UploadPaths
from tailrace.web.pages.forms import sentence
from tailrace.web.pages.frame import PersonRequest, View, for_person
from tailrace.web.uploads.errors import StorageUnavailable, UploadRejected


def upload_page(paths: UploadPaths, too_large: View) -> Callable[[View], View]:
    """Decorate the view of an upload page for signed-in users, at one of the paths: GET shows the
    form, POST uploads. `too_large` is the view for longer requests than the paths allow."""

    def decorate(view: View) -> View:
        checked = csrf_protect(view)

        @wraps(view)
        def page(request: PersonRequest) -> HttpResponseBase:
            if int(request.META.get("CONTENT_LENGTH") or 0) > paths.body_bytes:
                return too_large(request)
            return checked(request)

        page.upload_paths = paths  # type: ignore[attr-defined]
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
