"""The routes that logs and error reports contain instead of paths, since paths contain secrets:
`/feeds/me/<str:token>.atom`. Numbers are kept, as in `/admin/tailrace_jobs/job/7/change/`."""

import re
from functools import lru_cache
from urllib.parse import quote

from django.apps import apps
from django.urls import Resolver404, resolve
from django.urls.resolvers import ResolverMatch

SHORTEST_SECRET = 8
NUMBER = re.compile(r"[0-9]{1,19}")


def route_of(path: str) -> str:
    """Return the route of a path; if the path has no route, only its first folder."""
    return _route_and_secrets(path)[0]


def without_path(text: str, path: str) -> str:
    """Return the text with the request's path and its secret parts replaced, also where they are
    escaped: Django logs a line break in a path as `\\n`."""
    route, secrets = _route_and_secrets(path)
    for secret, replacement in ((path.lstrip("/"), route.lstrip("/")), *secrets):
        if len(secret) >= SHORTEST_SECRET:
            escaped = secret.encode("unicode_escape").decode()
            for form in (secret, escaped, quote(secret, errors="replace")):
                text = text.replace(form, replacement)
    return text


@lru_cache(maxsize=256)
def _route_and_secrets(path: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the route of a path, and its possibly secret values with their replacements."""
    try:
        match = resolve(path) if apps.ready else None
    except Resolver404:
        match = None
    if match is None:
        folders = path.split("/", 2)
        return (f"/{folders[1]}/…" if len(folders) > 2 else "(no route)"), ()
    secrets = tuple(
        (str(value), f"<{name}>")
        for name, value in match.kwargs.items()
        if not NUMBER.fullmatch(str(value))
    )
    return f"/{_with_numbers(match)}", secrets


def _with_numbers(match: ResolverMatch) -> str:
    """Return the route with the values of numeric parameters filled in."""
    route = match.route
    for name, value in match.kwargs.items():
        if NUMBER.fullmatch(str(value)):
            route = re.sub(rf"<(\w+:)?{name}>", str(value), route)
    return route
