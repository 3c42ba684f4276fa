"""gate: who calls, whether they may, and how often.

A program shows a token, which opens what its scopes name; a logged-in browser has its user's
rights, and needs Django's CSRF token to change anything. Permissions are asked of the user in
both cases.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.utils import check_csrf

from jobs import bucket
from jobs.models import Bucket
from subscriptions import tokens
from subscriptions.api import bodies
from subscriptions.api.problems import Problem
from subscriptions.models import ApiToken

SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a user, by a token or (None) in a browser."""

    user: User
    token: ApiToken | None

    def may(self, permission: str) -> bool:
        return self.user.has_perm(permission)


class ApiRequest(HttpRequest):
    """What an operation gets: a request that came through the gate."""

    auth: Caller
    budget: dict[str, str]
    parsed: Any
    """What its JSON body says."""


class Needs:
    """Lets in who has the scope and all the permissions.

    It answers in this order: 401, 429, 403, 413, 411, 415, 400. With `files`, what is sent is
    left to the operation, which may get files; it is refused by the length that it announces (a
    call that gives the most bytes, and the setting that says so) before a byte of it is read.
    """

    def __init__(
        self,
        scope: str,
        *permissions: str,
        json: bool = True,
        files: Callable[[], tuple[int, str]] | None = None,
    ) -> None:
        self.scope, self.permissions, self.json, self.files = scope, permissions, json, files

    def __call__(self, request: HttpRequest) -> Caller:
        if self.files is not None and "Authorization" not in request.headers:
            bodies.check_length(request, *self.files())  # Django reads on, for its CSRF token
        caller = _identify(request)
        _spend(caller, request)
        self._check_rights(caller)
        if self.files is not None:
            bodies.check_length(request, *self.files())
        elif request.method not in SAFE:
            bodies.check_size(request)
            if self.json and request.body:
                bodies.check_type(request, "application/json")
                cast(ApiRequest, request).parsed = bodies.parse(request.body)
        return caller

    def _check_rights(self, caller: Caller) -> None:
        if caller.token is not None and self.scope not in caller.token.scopes:
            challenge = f'Bearer error="insufficient_scope", scope="{self.scope}"'
            raise Problem(
                403,
                f"this token lacks the scope {self.scope}",
                kind="scope-missing",
                headers={"WWW-Authenticate": challenge},
            )
        for permission in self.permissions:
            if not caller.may(permission):
                raise lacks(caller.user, permission)


def lacks(user: User, permission: str) -> Problem:
    return Problem(
        403,
        f"{user.get_username()} lacks the permission {permission}",
        kind="permission-missing",
    )


def caller(request: HttpRequest) -> Caller:
    """Return who came through the gate with this request."""
    return cast(ApiRequest, request).auth


def _identify(request: HttpRequest) -> Caller:
    header = request.headers.get("Authorization")
    if header is not None:  # it never falls back to the session: a revoked token opens nothing
        scheme, _, text = header.partition(" ")
        token = tokens.find(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            raise _stranger("this token opens nothing: it is unknown, revoked or expired", True)
        return Caller(token.user, token)
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        raise _stranger("send a token: Authorization: Bearer tr_…")
    if check_csrf(request) is not None:
        raise Problem(403, "send Django's CSRF token as X-CSRFToken", kind="csrf")
    return Caller(user, None)


def _stranger(detail: str, shown: bool = False) -> Problem:
    challenge = 'Bearer error="invalid_token"' if shown else "Bearer"
    return Problem(401, detail, headers={"WWW-Authenticate": challenge})


def _spend(who: Caller, request: HttpRequest) -> None:
    """Take a token of the caller's bucket, and keep what is left of it for the answer's headers."""
    rate, burst = settings.API_RATE, max(settings.API_BURST, 1)
    name = f"api:user:{who.user.pk}" if who.token is None else f"api:token:{who.token.pk}"
    wait = bucket.take(name, rate, burst)
    left = 0 if wait else _left(name)
    budget = {
        "RateLimit-Policy": f'"api";q={burst};w={math.ceil(burst / rate)}',
        "RateLimit": f'"api";r={left};t={math.ceil(wait if wait else (burst - left) / rate)}',
    }
    cast(ApiRequest, request).budget = budget
    if wait:
        raise Problem(
            429,
            f"{rate:g} requests a second, {burst} at once: the next may come in {wait:.1f} s",
            kind="rate-limited",
            headers={"Retry-After": str(math.ceil(wait))},
        )


def _left(name: str) -> int:
    tokens_left = Bucket.objects.filter(name=name).values_list("tokens", flat=True).first()
    return max(math.floor(tokens_left or 0), 0)
