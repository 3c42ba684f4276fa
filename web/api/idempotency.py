"""The Idempotency-Key of every POST: a request that is sent repeatedly is carried out once. The key
is stored between validation and operation, and deleted after an error. The response is stored
encrypted, unless it contains a secret, and returned to a repeated request. Operations that declare
the header themselves store the key in their own transaction; operations that create a job use
`tailrace.jobs.platform.requests` for that."""

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
from pydantic import AfterValidator, WithJsonSchema

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.platform.requests.errors import KeyInUse, KeyReused
from tailrace.jobs.platform.requests.request_keys import HOURS, MAX_LENGTH
from tailrace.net.encryption import DecryptionError, decrypt, encrypt
from tailrace.web.api.auth import caller
from tailrace.web.api.faults import IDEMPOTENCY_KEY as HEADER
from tailrace.web.api.problems import Problem, wrong_header
from tailrace.web.models import AnsweredRequest

DESCRIPTION = (
    "a request that is sent again with the same key is carried out only once;"
    f" keys are stored for at least {HOURS} hours"
)
SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": "^[!-~]+$"}
_KEY = re.compile(rf"[!-~]{{1,{MAX_LENGTH}}}")


def _check(key: str) -> str:
    """Return the key. Raises ValueError if it is too long, or has other characters."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"send 1 to {MAX_LENGTH} printable ASCII characters without spaces")
    return key


KeyHeader = Annotated[
    Annotated[str, AfterValidator(_check), WithJsonSchema(SCHEMA)] | None,
    Header(alias=HEADER, description=DESCRIPTION),
]
"""The header of an operation that stores the key itself, such as one that creates a job."""
REPLAYED = "Idempotency-Replayed"
MAX_KEYS = 10_000
"""Maximum number of stored keys of one user."""
MAX_ANSWER = 32_768
"""Maximum number of characters of a stored response."""
RETRY_SECONDS = "2"

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
    """Whether the operation declares the Idempotency-Key header itself."""
    return "idempotency_key" in inspect.signature(view).parameters


@contextmanager
def key_problems() -> Iterator[None]:
    """Turn the errors of operations that store the key themselves into problems."""
    try:
        yield
    except KeyReused as error:
        raise _reused(error) from None
    except KeyInUse as error:
        raise _in_use(f"{error}; try again") from None


def once_for_its_key(view: View) -> View:
    """Decorate an operation: a POST with an Idempotency-Key is carried out once."""
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
    """Store the response for the request's key, if it has one; delete the key after an error."""
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
                answer=_encrypted_answer(request, response),
            )
    except DatabaseError as error:  # the key stays in use, so the request is not carried out again
        log.warning("idempotency.not_kept", error=str(error).strip()[:200])


def _encrypted_answer(request: HttpRequest, response: HttpResponseBase) -> str:
    """Return the encrypted body; "" if it contains a secret or is too long to be stored."""
    if getattr(request, "makes_secret", False) or not isinstance(response, HttpResponse):
        return ""
    text = response.content.decode()
    return encrypt(text) if len(text) <= MAX_ANSWER else ""


def _begin(request: HttpRequest, key: str) -> HttpResponse | None:
    """Store the key for this request and return None, or return the stored response of the key.
    Raises a Problem if it belongs to another request, or has no stored response."""
    try:
        _check(key)
    except ValueError as error:
        raise wrong_header(HEADER, str(error)) from None
    user, digest = caller(request).user.pk, _digest(request)
    for _ in range(2):  # the first request may fail and delete its key between the two statements
        if rows := query(_TAKE, user=user, key=key, digest=digest, most=MAX_KEYS):
            cast(Any, request).idempotency_id = rows[0][0]
            return None
        if row := AnsweredRequest.objects.filter(user=user, key=key).first():
            break
    else:
        detail = (
            f"you have {MAX_KEYS} keys of the last {HOURS} hours, the maximum; send the request"
            " without a key, or later"
        )
        raise Problem(409, detail, kind="too-many")
    if row.digest != digest:
        raise _reused(KeyReused(key))
    return _answer_of(row)


def _reused(error: KeyReused) -> Problem:
    return wrong_header(HEADER, str(error), kind="key-reused")


def _in_use(detail: str) -> Problem:
    return Problem(409, detail, kind="key-in-use", headers={"Retry-After": RETRY_SECONDS})


def _answer_of(row: AnsweredRequest) -> HttpResponse:
    if row.status is None:
        detail = (
            f"a request with this {HEADER} is still being processed; if it was interrupted, check"
            " whether it was carried out"
        )
        raise _in_use(detail)
    location = {"Location": row.location} if row.location else {}
    try:
        text = decrypt(row.answer) if row.answer else None
    except DecryptionError:
        text = None
    if text is None:
        detail = (
            "the request was already carried out; its response is not stored, since it contained"
            " a secret or was too long"
        )
        raise Problem(409, detail, kind="key-done", headers=location)
    headers = {**location, REPLAYED: "true"}
    return HttpResponse(text, "application/json", status=row.status, headers=headers)


def _digest(request: HttpRequest) -> str:
    """Return the SHA-256 of the request: its URL, and its body or form."""
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
    """Yield the parts of a form. The body is not used, since its boundary differs each time."""
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
