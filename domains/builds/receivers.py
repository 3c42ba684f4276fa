"""The queries behind the roles: who holds a role, watches, moderates, or has a token."""

from collections.abc import Iterable
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import Q

from db.query import query
from domains.builds.models import TokenHolder, Watch
from subscriptions.types.roles import Receivers


class PackageRef(NamedTuple):
    """A package, or with an empty `package` its project."""

    project: str
    package: str = ""


# A package without holders of its own falls back to its project and to its development package;
# a development package without holders of its own falls back to its project.
_HOLDERS = """
WITH refs AS (
  SELECT DISTINCT project, package
  FROM unnest(%(projects)s::text[], %(packages)s::text[]) AS t (project, package)
), own AS MATERIALIZED (
  SELECT refs.project AS of_project, refs.package AS of_package, h."user", h."group"
  FROM refs JOIN builds_roleholder h ON h.backend = %(backend)s AND h.project = refs.project
    AND h.package = refs.package AND h.role = %(role)s
), bare AS (
  SELECT project, package FROM refs WHERE package <> ''
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


def holders(backend: str, role: str, refs: Iterable[PackageRef]) -> Receivers:
    """Return who holds `role` (maintainer, bugowner, reader …) of any of them, in one statement."""
    refs = [ref for ref in set(refs) if ref.project]
    if not refs:
        return Receivers()
    projects, packages = (list(column) for column in zip(*refs, strict=True))
    rows = query(_HOLDERS, backend=backend, role=role, projects=projects, packages=packages)
    return Receivers.of((user for user, _group in rows), (group for _user, group in rows))


def watchers_of_projects(projects: Iterable[str]) -> Receivers:
    """Return who watches any of the projects."""
    return _watchers(Q(project__in=set(filter(None, projects)), package=""))


def watchers_of_packages(refs: Iterable[PackageRef]) -> Receivers:
    """Return who watches any of the packages."""
    condition = Q(pk__in=[])
    for ref in set(refs):
        if ref.project and ref.package:
            condition |= Q(project=ref.project, package=ref.package)
    return _watchers(condition)


def watchers_of_request(number: int) -> Receivers:
    return _watchers(Q(request=number))


def _watchers(condition: Q) -> Receivers:
    watches = Watch.objects.filter(condition)
    return Receivers.of(watches.values_list("user__username", flat=True).distinct())


def moderators() -> Receivers:
    """Return the users who have the permission to moderate, directly or through a group."""
    users = User.objects.with_perm(
        "builds.moderate",
        include_superusers=False,
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return Receivers.of(users.values_list("username", flat=True))


def token_holders(token: int, role: str) -> Receivers:
    """Return the executor of a token, or those it is shared with."""
    rows = list(TokenHolder.objects.filter(token=token, role=role).values_list("user", "group"))
    return Receivers.of((user for user, _group in rows), (group for _user, group in rows))
