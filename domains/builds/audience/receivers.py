"""The queries behind the roles: role holders, watchers, moderators and token holders."""

from collections.abc import Collection, Iterable

from django.contrib.auth.models import User
from django.db.models import Q

from tailrace.db.query import query
from tailrace.domains.builds.backends.names import PackageRef
from tailrace.domains.builds.models import TokenHolder, Watch
from tailrace.subscriptions.types.roles import Receivers

MAX_DEVEL_STEPS = 10
"""The maximum length of a chain of development packages."""

DEVEL_CHAIN = f"""
WITH RECURSIVE chain AS (
  SELECT project AS of_project, package AS of_package, project, package, 0 AS steps
  FROM unnest(%(projects)s::text[], %(packages)s::text[]) AS t (project, package)
  UNION
  SELECT of_project, of_package, p.devel_project, p.devel_package, steps + 1
  FROM chain JOIN tailrace_builds_package p ON p.backend = %(backend)s AND p.project = chain.project
    AND p.name = chain.package AND p.devel_project <> '' AND p.gone_at IS NULL
  WHERE steps < {MAX_DEVEL_STEPS}
)
"""
"""The given packages with their development packages, and the development packages of these."""

# As in OBS: a package without holders of its own has the holders of its project. In both cases it
# also has the holders of its development package.
_HOLDERS = f"""
{DEVEL_CHAIN}, refs AS (
  SELECT DISTINCT project, package FROM chain
), own AS MATERIALIZED (
  SELECT refs.project AS of_project, refs.package AS of_package, h."user", h."group"
  FROM refs JOIN tailrace_builds_roleholder h ON h.backend = %(backend)s
    AND h.project = refs.project AND h.package = refs.package AND h.role = %(role)s
), bare AS (
  SELECT project, package FROM refs WHERE package <> ''
  EXCEPT SELECT of_project, of_package FROM own
)
SELECT "user", "group" FROM own
UNION SELECT h."user", h."group"
FROM (SELECT DISTINCT project FROM bare) fallback
  JOIN tailrace_builds_roleholder h ON h.backend = %(backend)s
  AND h.project = fallback.project AND h.package = '' AND h.role = %(role)s
"""


def holders(backend: str, role: str, refs: Iterable[PackageRef]) -> Receivers:
    """Return the holders of `role` (maintainer, bugowner, reader …) in any of `refs`."""
    sources = {ref.sources for ref in refs if ref.project}
    if not sources:
        return Receivers()
    projects, packages = (list(column) for column in zip(*sources, strict=True))
    return _receivers(
        query(_HOLDERS, backend=backend, role=role, projects=projects, packages=packages)
    )


def _receivers(rows: Collection[tuple[str, str]]) -> Receivers:
    return Receivers.of((user for user, _group in rows), (group for _user, group in rows))


def watchers_of_projects(projects: Iterable[str]) -> Receivers:
    """Return the watchers of any of the projects."""
    return _watchers(Q(project__in=set(filter(None, projects)), package=""))


def watchers_of_packages(refs: Iterable[PackageRef]) -> Receivers:
    """Return the watchers of any of the packages, for a multibuild flavour also of its package."""
    condition = Q(pk__in=[])
    for watched in {watched for ref in refs for watched in (ref, ref.sources)}:
        if watched.project and watched.package:
            condition |= Q(project=watched.project, package=watched.package)
    return _watchers(condition)


def watchers_of_request(number: int) -> Receivers:
    return _watchers(Q(request=number))


def _watchers(condition: Q) -> Receivers:
    watches = Watch.objects.filter(condition)
    return Receivers.of(watches.values_list("user__username", flat=True).distinct())


def moderators() -> Receivers:
    """Return the active users who have the permission to moderate; if there are none, the active
    superusers and staff, as OBS does."""
    users = User.objects.with_perm(
        "tailrace_builds.moderate",
        include_superusers=False,
        backend="django.contrib.auth.backends.ModelBackend",
    )
    names = list(users.values_list("username", flat=True))
    if not names:
        admins = User.objects.filter(Q(is_superuser=True) | Q(is_staff=True), is_active=True)
        names = list(admins.values_list("username", flat=True))
    return Receivers.of(names)


def token_holders(token: int, role: str) -> Receivers:
    """Return the users and groups with this TokenHolder.Role: the executor or the members."""
    return _receivers(
        TokenHolder.objects.filter(token=token, role=role).values_list("user", "group")
    )
