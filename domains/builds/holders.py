"""holders: who holds a role of a package or project: one statement for any number of them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q

from domains.builds.models import TokenHolder, Watch
from subscriptions.roles import Receivers


class Place(NamedTuple):
    """A package, or with an empty `package` its project."""

    project: str
    package: str = ""


# A package without a holder of its own falls back to its project, and to the package where it is
# developed; that one, without a holder of its own, to its project.
_HOLDERS = """
WITH asked AS (
  SELECT DISTINCT project, package
  FROM unnest(%(projects)s::text[], %(packages)s::text[]) AS t (project, package)
), own AS MATERIALIZED (
  SELECT asked.project AS of_project, asked.package AS of_package, h."user", h."group"
  FROM asked JOIN builds_roleholder h ON h.backend = %(backend)s AND h.project = asked.project
    AND h.package = asked.package AND h.role = %(role)s
), bare AS (
  SELECT project, package FROM asked WHERE package <> ''
  EXCEPT SELECT of_project, of_package FROM own
), devel AS MATERIALIZED (
  SELECT DISTINCT p.devel_project AS project, p.devel_package AS package
  FROM bare JOIN builds_package p ON p.backend = %(backend)s AND p.project = bare.project
    AND p.name = bare.package AND p.devel_project <> ''
), developers AS MATERIALIZED (
  SELECT devel.project AS of_project, devel.package AS of_package, h."user", h."group"
  FROM devel JOIN builds_roleholder h ON h.backend = %(backend)s AND h.project = devel.project
    AND h.package = devel.package AND h.role = %(role)s
), fallback AS (
  SELECT project FROM bare
  UNION SELECT project FROM (
    SELECT project, package FROM devel EXCEPT SELECT of_project, of_package FROM developers
  ) undeveloped
)
SELECT "user", "group" FROM own
UNION SELECT "user", "group" FROM developers
UNION SELECT h."user", h."group"
FROM fallback JOIN builds_roleholder h ON h.backend = %(backend)s
  AND h.project = fallback.project AND h.package = '' AND h.role = %(role)s
"""


def holders(backend: str, role: str, places: Iterable[Place]) -> Receivers:
    """Return who holds `role` (maintainer, bugowner, reader …) of any of the places."""
    asked = [place for place in set(places) if place.project]
    if not asked:
        return Receivers()
    params: dict[str, Any] = {
        "backend": backend,
        "role": role,
        "projects": [place.project for place in asked],
        "packages": [place.package for place in asked],
    }
    with connection.cursor() as cursor:
        cursor.execute(_HOLDERS, params)
        found = cursor.fetchall()
    return Receivers.of((user for user, _group in found), (group for _user, group in found))


def watchers_of_projects(projects: Iterable[str]) -> Receivers:
    """Return who watches any of the projects."""
    return _watchers(Q(project__in=set(filter(None, projects)), package=""))


def watchers_of_packages(places: Iterable[Place]) -> Receivers:
    """Return who watches any of the packages."""
    wanted = Q(pk__in=[])
    for place in set(places):
        if place.project and place.package:
            wanted |= Q(project=place.project, package=place.package)
    return _watchers(wanted)


def watchers_of_request(number: int) -> Receivers:
    return _watchers(Q(request=number))


def _watchers(wanted: Q) -> Receivers:
    watches = Watch.objects.filter(wanted)
    return Receivers.of(watches.values_list("user__username", flat=True).distinct())


def moderators() -> Receivers:
    """Return the users who were given the permission to moderate, themselves or by a group."""
    users = User.objects.with_perm(
        "builds.moderate",
        include_superusers=False,
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return Receivers.of(users.values_list("username", flat=True))


def token_holders(token: int, role: str) -> Receivers:
    """Return the executor of a token, or those it is shared with."""
    found = list(TokenHolder.objects.filter(token=token, role=role).values_list("user", "group"))
    return Receivers.of((user for user, _group in found), (group for _user, group in found))
