"""Authentication of API requests, with checks of scopes, permissions and rate limits. A program
sends a token, whose scopes limit the operations. A signed-in browser needs no scopes, but sends
Django's CSRF token for changes. In both cases the user needs the permissions of the operation."""

import math
from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.utils import check_csrf

from tailrace.jobs.destinations.rate_limit import Taken
from tailrace.web.accounts import budget, tokens
from tailrace.web.accounts.security import required_factor
from tailrace.web.accounts.security.log import record_some
from tailrace.web.api.problems import Problem, too_many_requests
from tailrace.web.api.requests import request_body
from tailrace.web.bodies import UploadPaths
from tailrace.web.event_types import ScopeRefused
from tailrace.web.models import ApiToken
from tailrace.web.pages import confirmation

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a request, and the token; the token is None for a browser's session."""

    user: User
    token: ApiToken | None

    def may(self, permission: str) -> bool:
        return self.user.has_perm(permission)


class ApiRequest(HttpRequest):
    """An authenticated request, as passed to operations."""

    auth: Caller
    parsed: Any
    """The parsed JSON body."""
    rate_limit_headers: dict[str, str]
    makes_secret: bool
    """Whether the response contains a secret."""


class Needs:
    """Requires the scope and all of the permissions. The checks run in the order of their statuses:
    401, 429, 403, 413, 411, 415, 400. `files` is for operations that read the body themselves: it
    has their paths, and the limit of their bodies. A longer body is refused before it is read.
    `cost` counts in the rate limit; an ordinary request costs 1."""

    def __init__(
        self,
        scope: str,
        *permissions: str,
        json: bool = True,
        files: UploadPaths | None = None,
        cost: float = 1.0,
    ) -> None:
        self.scope, self.permissions, self.json, self.files = scope, permissions, json, files
        self.cost = cost

    def __call__(self, request: HttpRequest) -> Caller:
        if self.files is not None and "Authorization" not in request.headers:
            # before the CSRF check, which reads the body
            request_body.check_length(request, self.files.body_bytes, self.files.limit)
        caller = _authenticate(request)
        cast(ApiRequest, request).auth = caller  # so that a refusal is logged with its user
        count(request, self.cost)
        self._check_rights(caller)
        if self.files is not None:
            request_body.check_length(request, self.files.body_bytes, self.files.limit)
        elif request.method not in SAFE_METHODS:
            request_body.check_size(request)
            if self.json and request.body:
                request_body.check_type(request, "application/json")
                cast(ApiRequest, request).parsed = request_body.parse(request.body)
        return caller

    def _check_rights(self, caller: Caller) -> None:
        if caller.token is not None and self.scope not in caller.token.scopes:
            fields = {"token_name": caller.token.name, "scope": self.scope}
            key, token = f"scope_refused:{caller.token.pk}", caller.token.pk
            record_some(key, ScopeRefused, caller.user, token=token, **fields)
            challenge = f'Bearer error="insufficient_scope", scope="{self.scope}"'
            raise Problem(
                403,
                f"this token does not have the scope {self.scope}",
                kind="scope-missing",
                headers={"WWW-Authenticate": challenge},
            )
        for permission in self.permissions:
            if not caller.may(permission):
                raise permission_missing(caller.user, permission)


def count(request: HttpRequest, cost: float) -> None:
    """Take the cost from the budgets of the caller, also for costs beyond the `cost` of `Needs`.
    Raises a 429 problem if they are too small. Sets `request.rate_limit_headers`."""
    user, token = caller(request).user.pk, caller(request).token
    try:
        _set_limit_headers(request, budget.spend(user, token.pk if token else None, cost))
    except budget.BudgetExceeded as error:
        _set_limit_headers(request, error.taken)
        raise too_many_requests(str(error), error.wait) from None


def _set_limit_headers(request: HttpRequest, taken: Taken) -> None:
    bucket = taken.bucket
    reset = math.ceil(taken.wait or (bucket.burst - taken.left) / bucket.rate)
    cast(ApiRequest, request).rate_limit_headers = {
        "RateLimit-Policy": f'"api";q={bucket.burst:g};w={math.ceil(bucket.burst / bucket.rate)}',
        "RateLimit": f'"api";r={math.floor(taken.left)};t={reset}',
    }


def permission_missing(user: User, permission: str) -> Problem:
    detail = f"{user.get_username()} does not have the permission {permission}"
    return Problem(403, detail, kind="permission-missing")


def require_recent_login(request: HttpRequest) -> None:
    """Raise a 403 problem if the user has not entered the password in the last ten minutes.
    Operations call this before they create a secret, since a session may be stolen. The response is
    not stored for an Idempotency-Key."""
    cast(ApiRequest, request).makes_secret = True
    if caller(request).token is None and not confirmation.is_confirmed(request):
        detail = (
            "sign in again: a session can create secrets only within ten minutes of signing in."
            " A token can always create them"
        )
        raise Problem(403, detail, kind="confirmation-required")


def caller(request: HttpRequest) -> Caller:
    return cast(ApiRequest, request).auth


def _authenticate(request: HttpRequest) -> Caller:
    header = request.headers.get("Authorization")
    if header is not None:  # an invalid token is refused even if there is a valid session
        scheme, _, text = header.partition(" ")
        token = tokens.find(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            _count_refused(request)
            detail = "this token is invalid, revoked or expired"
            raise _unauthenticated(detail, 'Bearer error="invalid_token"')
        return Caller(token.user, token)
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        raise _unauthenticated("send a token: Authorization: Bearer tr_…", "Bearer")
    if check_csrf(request) is not None:
        raise Problem(403, "send Django's CSRF token as X-CSRFToken", kind="csrf")
    if required_factor.is_missing(request):
        detail = "staff need a second factor; set it up at /accounts/second-factor/set-up/"
        raise Problem(403, detail, kind="second-factor-required")
    return Caller(user, None)


def _count_refused(request: HttpRequest) -> None:
    """Take one request with an invalid token from the budget of the client's IP address. Valid
    tokens from this address are not affected."""
    try:
        budget.spend_of_address(request, "invalid_token")
    except budget.BudgetExceeded as error:
        raise too_many_requests(str(error), error.wait) from None


def _unauthenticated(detail: str, challenge: str) -> Problem:
    return Problem(401, detail, headers={"WWW-Authenticate": challenge})
