"""Hidden projects: only their role holders may read their events.

A project also counts as hidden while a reported change of its metadata is unread and, unless
OBS_UNKNOWN_PROJECTS is `public`, while its metadata is unread or its backend is unknown.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from itertools import starmap
from operator import and_
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import OuterRef, Q, QuerySet, Subquery, Value

from tailrace.domains.builds.backends.names import PackageRef, is_name
from tailrace.domains.builds.backends.origin import backend_of
from tailrace.domains.builds.backends.refreshes import request_refreshes
from tailrace.domains.builds.models import Project, RoleHolder
from tailrace.domains.builds.models.project import has_changed
from tailrace.events.privacy.visibility import VIEW_HIDDEN
from tailrace.events.publish import Recorded
from tailrace.events.readers import NOBODY, UNDECIDED, Readers


class ProjectRef(NamedTuple):
    """A project on a backend. The backend is empty if it is unknown."""

    backend: str
    project: str


def readers(events: Sequence[Recorded]) -> dict[int, Readers | None]:
    """Return the readers of each event, by its id: the users and groups that hold a role in every
    hidden project that the event names. None means everybody."""
    projects = {event.id: projects_of(event) for event in events}
    readers = readers_of_projects(set().union(*projects.values()))
    return {id: _common_readers(readers[ref] for ref in refs) for id, refs in projects.items()}


def projects_of(event: Recorded) -> set[ProjectRef]:
    """Return the projects that the event names."""
    backend = backend_of(event)
    return {ProjectRef(backend, name) for name in project_names(event.raw_payload)}


def project_names(payload: Any) -> Iterator[str]:
    """Yield the values of all keys with "project" in their name, at any depth."""
    remaining = [("", payload)]
    while remaining:
        key, value = remaining.pop()
        if isinstance(value, dict):
            remaining += value.items()
        elif isinstance(value, list):
            remaining += [(key, item) for item in value]
        elif "project" in key.lower() and value and not isinstance(value, bool):
            yield str(value)


def readers_of_projects(projects: Collection[ProjectRef]) -> dict[ProjectRef, Readers | None]:
    """Return the users and groups that may read the data of each project; None means everybody."""
    rows = _project_rows(projects) if projects else {}
    stored = [row for project_rows in rows.values() for row in project_rows]
    holders = _role_holders({ProjectRef(row.backend, row.name) for row in stored if row.hidden})
    return {project: _project_readers(project, rows[project], holders) for project in projects}


def request_metadata(events: Iterable[Recorded]) -> None:
    """Enqueue a refresh of each project that these events name, if its metadata is unread."""
    readers = readers_of_projects(set().union(*map(projects_of, events)))
    request_refreshes(
        (ref.backend, PackageRef(ref.project))
        for ref, project_readers in readers.items()
        if project_readers is not None and project_readers.undecided
    )


def readable_rows(
    rows: QuerySet[Any], user: User, project: str = "project", backend: str | None = "backend"
) -> QuerySet[Any]:
    """Return the rows that belong to a public project or to no project; all rows, if the user may
    view hidden events. `project` and `backend` are names of columns (None: there is none)."""
    if user.has_perm(VIEW_HIDDEN):
        return rows
    same = Q(backend=OuterRef(backend)) if backend else Q(backend__in=["", *settings.OBS_BACKENDS])
    projects = Project.objects.filter(same, name=OuterRef(project))
    # PostgreSQL evaluates a scalar subquery for each row. It would join EXISTS with all projects.
    rows = rows.alias(
        _hidden=_one_if_any(projects.filter(hidden=True)),
        _changed=_one_if_any(projects.filter(has_changed(), refreshed_at__isnull=False)),
    )
    public = Q(_hidden=None, _changed=None)
    if settings.OBS_UNKNOWN_PROJECTS != "public":
        known = projects.exclude(refreshed_at=None).exclude(backend="")
        rows = rows.alias(_known=_one_if_any(known))
        public &= Q(_known=1)
    return rows.filter(public | Q(**{project: ""}))


def _one_if_any(projects: QuerySet[Project]) -> Subquery:
    """Return a subquery for 1 if there are such projects, else for NULL."""
    return Subquery(projects.annotate(one=Value(1)).values("one")[:1])


class _ProjectRow(NamedTuple):
    """The stored state of a project."""

    backend: str
    name: str
    hidden: bool
    exists: bool
    refreshed_at: datetime | None
    changed: bool


def _project_rows(projects: Collection[ProjectRef]) -> Mapping[ProjectRef, list[_ProjectRow]]:
    """Return the rows of each project; if its backend is unknown, of all backends."""
    backends = {project.backend for project in projects}
    if "" in backends:
        backends |= {*settings.OBS_BACKENDS}
    rows = (
        Project.objects.filter(backend__in=backends, name__in={ref.project for ref in projects})
        .annotate(changed=has_changed())
        .values_list("backend", "name", "hidden", "exists", "refreshed_at", "changed")
    )
    rows_by_project: dict[ProjectRef, list[_ProjectRow]] = defaultdict(list)
    for row in starmap(_ProjectRow, rows):
        rows_by_project[ProjectRef(row.backend, row.name)].append(row)
        if row.backend:
            rows_by_project[ProjectRef("", row.name)].append(row)
    return rows_by_project


def _project_readers(
    project: ProjectRef, rows: Sequence[_ProjectRow], holders: Mapping[ProjectRef, Readers]
) -> Readers | None:
    restrictions = [
        _readers_of_unread_project(row.backend)
        if row.refreshed_at and row.changed
        else holders.get(ProjectRef(row.backend, row.name), NOBODY)
        for row in rows
        if row.hidden or (row.refreshed_at and row.changed)
    ]
    if restrictions:
        return _common_readers(restrictions)
    is_public = project.backend and any(row.refreshed_at for row in rows)
    if is_public or settings.OBS_UNKNOWN_PROJECTS == "public":
        return None
    may_exist = is_name(project.project) and all(row.exists or row.changed for row in rows)
    return _readers_of_unread_project(project.backend) if may_exist else NOBODY


def _readers_of_unread_project(backend: str) -> Readers:
    """Return UNDECIDED if the metadata can be read from the backend, else NOBODY."""
    return UNDECIDED if backend in settings.OBS_BACKENDS else NOBODY


def _role_holders(projects: Collection[ProjectRef]) -> dict[ProjectRef, Readers]:
    """Return the users and groups that hold any role in projects of these backends and names."""
    backends, names = {ref.backend for ref in projects}, {ref.project for ref in projects}
    rows = RoleHolder.objects.filter(backend__in=backends, project__in=names, package="")
    by_project = rows.values_list("backend", "project")
    holders = by_project.annotate(users=ArrayAgg("user"), groups=ArrayAgg("group"))
    return {
        ProjectRef(backend, project): Readers.of(users, groups)
        for backend, project, users, groups in holders
    }


def _common_readers(readers: Iterable[Readers | None]) -> Readers | None:
    """Return the users and groups that are in all of these Readers; None stands for everybody."""
    restricting = [rule for rule in readers if rule is not None]
    return reduce(and_, restricting) if restricting else None
