"""The Idempotency-Key of every POST: a request that is sent again is carried out once.

A key is taken after the request was found valid and before anything is done. The answer is kept,
encrypted, and is what a repeated request gets; that of an error is not, so that the request can be
sent again. An answer with a secret is never kept. Operations that declare the header themselves
keep the key in the transaction of what they do; those that make a job, by `tailrace.jobs.requests`.
"""

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any, cast

import structlog
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Header

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.requests.errors import KeyInUse, KeyReused
from tailrace.jobs.requests.request_keys import HOURS, MAX_LENGTH
from tailrace.net.encryption import DecryptionError, decrypt, encrypt
from tailrace.web.api.auth import caller
from tailrace.web.api.faults import IDEMPOTENCY_KEY as HEADER
from tailrace.web.api.problems import Problem, wrong_header
from tailrace.web.models import AnsweredRequest

DESCRIPTION = (
    f"the same for all tries of one request, so that it is carried out once; kept for {HOURS} hours"
)
JobKey = Annotated[
    str | None,
    Header(alias=HEADER, min_length=1, max_length=MAX_LENGTH, description=DESCRIPTION),
]
"""The header of an operation that makes a job, whose key `tailrace.jobs.requests` keeps."""
REPLAYED = "Idempotency-Replayed"
MAX_KEYS = 10_000
"""Keys of one user at a time."""
MAX_ANSWER = 32_768
"""Characters of an answer that is kept."""
RETRY_SECONDS = "2"
_KEY = re.compile(rf"[!-~]{{1,{MAX_LENGTH}}}")

log = structlog.get_logger(__name__)

View = Callable[..., Any]

_TAKE = f"""
INSERT INTO tailrace_web_answeredrequest AS k (user_id, key, digest, created_at)
SELECT %(user)s, %(key)s, %(digest)s, {clock.NOW}
WHERE (SELECT count(*) FROM (
  SELECT FROM tailrace_web_answeredrequest WHERE user_id = %(user)s
    LIMIT %(most)s) AS mine) < %(most)s
ON CONFLICT (user_id, key) DO UPDATE
  SET digest = excluded.digest, status = NULL, location = '', answer = '',
      created_at = excluded.created_at
  WHERE k.created_at < excluded.created_at - make_interval(hours => {HOURS})
RETURNING id
"""


def has_own_key(view: View) -> bool:
    """Whether an operation declares the header itself."""
    return "idempotency_key" in inspect.signature(view).parameters


@contextmanager
def key_problems() -> Iterator[None]:
    """Turn what `tailrace.jobs.requests` raises for a key into problems."""
    try:
        yield
    except KeyReused as error:
        raise _reused(str(error)) from None
    except KeyInUse as error:
        raise _in_use(f"{error}; try again") from None


def once_for_its_key(view: View) -> View:
    """Decorate an operation: with an Idempotency-Key, a POST is carried out once."""
    if has_own_key(view):
        return view

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method == "POST" and HEADER in request.headers:
            answer = _begin(request, request.headers[HEADER])
            if answer is not None:
                return answer
        return view(request, *args, **kwargs)

    return wrapped


def keep(request: HttpRequest, response: HttpResponseBase) -> None:
    """Keep the response for the key that this request has taken, if it has; give back the key of a
    request that failed."""
    id = getattr(request, "idempotency_id", None)
    if id is None:
        return
    rows = AnsweredRequest.objects.filter(pk=id)
    try:
        if response.status_code >= 400:
            rows.delete()
        else:
            rows.update(
                status=response.status_code,
                location=response.get("Location", ""),
                answer=_kept(request, response),
            )
    except DatabaseError as error:  # the key stays in use: it is not carried out again
        log.warning("idempotency.not_kept", error=str(error).strip()[:200])


def _kept(request: HttpRequest, response: HttpResponseBase) -> str:
    if getattr(request, "makes_secret", False) or not isinstance(response, HttpResponse):
        return ""
    text = response.content.decode()
    return encrypt(text) if len(text) <= MAX_ANSWER else ""


def _begin(request: HttpRequest, key: str) -> HttpResponse | None:
    """Take the key for this request; return the answer that is kept for it, if there is one.

    Raises a Problem if the key stands for another request, or for one without an answer.
    """
    if not _KEY.fullmatch(key):
        detail = f"send 1 to {MAX_LENGTH} printable ASCII characters without spaces"
        raise wrong_header(HEADER, detail)
    user, digest = caller(request).user.pk, _digest(request)
    for _ in range(2):  # the first request may fail, and give its key back, between the statements
        if rows := query(_TAKE, user=user, key=key, digest=digest, most=MAX_KEYS):
            cast(Any, request).idempotency_id = rows[0][0]
            return None
        if row := AnsweredRequest.objects.filter(user=user, key=key).first():
            break
    else:
        detail = f"{MAX_KEYS} keys of the last {HOURS} hours are kept, the maximum; send none"
        raise Problem(409, detail, kind="too-many")
    if row.digest != digest:
        detail = f"it came with another request within {HOURS} hours"
        raise _reused(f"{detail}; send each request with a key of its own")
    return _answer_of(row)


def _reused(detail: str) -> Problem:
    return wrong_header(HEADER, detail, kind="key-reused")


def _in_use(detail: str) -> Problem:
    return Problem(409, detail, kind="key-in-use", headers={"Retry-After": RETRY_SECONDS})


def _answer_of(row: AnsweredRequest) -> HttpResponse:
    if row.status is None:
        detail = (
            f"a request with this {HEADER} is being worked on; if it was interrupted, look"
            " whether it was carried out"
        )
        raise _in_use(detail)
    location = {"Location": row.location} if row.location else {}
    try:
        text = decrypt(row.answer) if row.answer else None
    except DecryptionError:
        text = None
    if text is None:
        detail = "the request was carried out; its answer contained a secret, or was too long"
        raise Problem(409, detail, kind="key-done", headers=location)
    response = HttpResponse(text, "application/json", status=row.status)
    for name, value in {**location, REPLAYED: "true"}.items():
        response[name] = value
    return response


def _digest(request: HttpRequest) -> str:
    """Return the SHA-256 of what was sent: address, and body or form."""
    digest = hashlib.sha256()
    is_form = request.content_type == "multipart/form-data"
    for part in _form_parts(request) if is_form else _body_parts(request):
        digest.update(f"{len(part)}:".encode() + part)
    return digest.hexdigest()


def _body_parts(request: HttpRequest) -> Iterator[bytes]:
    names = sorted(name for name in request.headers if name.lower().startswith("ce-"))
    yield f"{request.get_full_path()} {request.content_type}".encode()
    yield from (f"{name}: {request.headers[name]}".encode() for name in names)
    yield request.body


def _form_parts(request: HttpRequest) -> Iterator[bytes]:
    """Yield the parts of a form, whose boundary differs from try to try."""
    yield request.get_full_path().encode()
    for name, values in sorted(request.POST.lists()):
        yield f"{name} {values}".encode()
    for name, files in sorted(request.FILES.lists()):
        for file in files:
            content = hashlib.sha256()
            for chunk in file.chunks():
                content.update(chunk)
            file.seek(0)
            yield f"{name} {file.name} ".encode() + content.digest()
