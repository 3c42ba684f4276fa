"""What logs and error reports show of a request's path: its route, since paths contain secrets.

`/feeds/me/<secret>.atom` is shown as `/feeds/me/<str:token>.atom`,
`/admin/tailrace_jobs/job/7/change/` with its number.
"""

import re
from functools import lru_cache

from django.apps import apps
from django.urls import Resolver404, resolve
from django.urls.resolvers import ResolverMatch

SHORTEST_SECRET = 8
NUMBER = re.compile(r"[0-9]{1,19}")


def route_of(path: str) -> str:
    """Return the route of a path; of a path without one, only the first folder."""
    return _described(path)[0]


def without_path(text: str, path: str) -> str:
    """Return a text that may quote a request's path, or a part of it, without them."""
    route, secrets = _described(path)
    for secret, shown in ((path, route), *secrets):
        text = text.replace(secret, shown) if len(secret) >= SHORTEST_SECRET else text
    return text


@lru_cache(maxsize=256)
def _described(path: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the route of a path, and what stands for each of its values that may be secret."""
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
    """Return the route with the values of those parameters that are numbers."""
    route = match.route
    for name, value in match.kwargs.items():
        if NUMBER.fullmatch(str(value)):
            route = re.sub(rf"<(\w+:)?{name}>", str(value), route)
    return route
