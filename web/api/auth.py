"""Authentication of API requests, their permissions and their rate limit.

A program sends a token and may do what the token's scopes allow; a signed-in browser has its
user's rights and needs Django's CSRF token for changes. The user needs the permissions in both
cases.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.utils import check_csrf

from web import tokens
from web.api import rate_limit, request_body
from web.api.problems import Problem
from web.models import ApiToken

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a request, and the token; None for a browser's session."""

    user: User
    token: ApiToken | None

    def may(self, permission: str) -> bool:
        return self.user.has_perm(permission)


class ApiRequest(HttpRequest):
    """An authenticated request, as operations get it."""

    auth: Caller
    parsed: Any
    """The content of the JSON body."""


class Needs:
    """Admits callers that have the scope and all the permissions.

    The checks run in this order: 401, 429, 403, 413, 411, 415, 400. With `files`, the operation
    reads the body itself; a body whose announced length is above the limit is refused before a
    byte of it is read. `files` returns that limit and the name of its setting.
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
            request_body.check_length(request, *self.files())  # the CSRF check reads the body
        caller = _authenticate(request)
        owner = f"token:{caller.token.pk}" if caller.token else f"user:{caller.user.pk}"
        rate_limit.count_request(request, owner)
        self._check_rights(caller)
        if self.files is not None:
            request_body.check_length(request, *self.files())
        elif request.method not in SAFE_METHODS:
            request_body.check_size(request)
            if self.json and request.body:
                request_body.check_type(request, "application/json")
                cast(ApiRequest, request).parsed = request_body.parse(request.body)
        return caller

    def _check_rights(self, caller: Caller) -> None:
        if caller.token is not None and self.scope not in caller.token.scopes:
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


def permission_missing(user: User, permission: str) -> Problem:
    detail = f"{user.get_username()} does not have the permission {permission}"
    return Problem(403, detail, kind="permission-missing")


def caller(request: HttpRequest) -> Caller:
    """Return the authenticated caller of the request."""
    return cast(ApiRequest, request).auth


def _authenticate(request: HttpRequest) -> Caller:
    header = request.headers.get("Authorization")
    if header is not None:  # an invalid token is refused even if there is a valid session
        scheme, _, text = header.partition(" ")
        token = tokens.find(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            detail = "this token is invalid, revoked or expired"
            raise _unauthenticated(detail, 'Bearer error="invalid_token"')
        return Caller(token.user, token)
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        raise _unauthenticated("send a token: Authorization: Bearer tr_…", "Bearer")
    if check_csrf(request) is not None:
        raise Problem(403, "send Django's CSRF token as X-CSRFToken", kind="csrf")
    return Caller(user, None)


def _unauthenticated(detail: str, challenge: str) -> Problem:
    return Problem(401, detail, headers={"WWW-Authenticate": challenge})
