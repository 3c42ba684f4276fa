"""Hidden projects: only those who hold a role in them may read their events.

A project counts as hidden until its metadata was read, and where the backend is unknown, unless
OBS_UNKNOWN_PROJECTS is `public`. From the report that its metadata changed until it is read again,
it counts as hidden, too.
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
from django.db.models import OuterRef, Q, QuerySet, Subquery, Value

from tailrace.domains.builds.backends.names import PackageRef, is_name
from tailrace.domains.builds.backends.origin import backend_of
from tailrace.domains.builds.backends.refreshes import request_refreshes
from tailrace.domains.builds.models import Project, RoleHolder
from tailrace.domains.builds.models.project import has_changed
from tailrace.events.publish import Recorded
from tailrace.events.readers import NOBODY, UNDECIDED, Readers
from tailrace.events.visibility import VIEW_HIDDEN


class Place(NamedTuple):
    """A project of a backend; the backend is empty if it is unknown."""

    backend: str
    project: str


def readers(events: Sequence[Recorded]) -> dict[int, Readers | None]:
    """Return who holds a role in every hidden project that an event names; None: everybody."""
    places = {event.id: places_of(event) for event in events}
    rules = readers_of_places(set().union(*places.values()))
    return {id: _all_of(rules[place] for place in named) for id, named in places.items()}


def places_of(event: Recorded) -> set[Place]:
    """Return the projects that the event names."""
    backend = backend_of(event)
    return {Place(backend, name) for name in project_names(event.raw_payload)}


def project_names(payload: Any) -> Iterator[str]:
    """Yield the values of all keys with "project" in their name, at any depth."""
    below = [("", payload)]
    while below:
        key, value = below.pop()
        if isinstance(value, dict):
            below += value.items()
        elif isinstance(value, list):
            below += [(key, item) for item in value]
        elif "project" in key.lower() and value and not isinstance(value, bool):
            yield str(value)


def readers_of_places(places: Collection[Place]) -> dict[Place, Readers | None]:
    """Return who alone may read what concerns each of these projects; None: everybody."""
    rows = _projects(places) if places else {}
    stored = [row for of_place in rows.values() for row in of_place]
    holders = _holders({Place(row.backend, row.name) for row in stored if row.hidden})
    return {place: _of_place(place, rows[place], holders) for place in places}


def request_metadata(events: Iterable[Recorded]) -> None:
    """Enqueue a refresh of each project that these events name and whose metadata is not read."""
    rules = readers_of_places(set().union(*map(places_of, events)))
    request_refreshes(
        (place.backend, PackageRef(place.project))
        for place, rule in rules.items()
        if rule is not None and rule.undecided
    )


def readable_rows(
    rows: QuerySet[Any], user: User, project: str = "project", backend: str | None = "backend"
) -> QuerySet[Any]:
    """Return the rows of a table whose project everybody may read, or all if the user may.

    `project` and `backend` are columns; a row without a project is readable.
    """
    if user.has_perm(VIEW_HIDDEN):
        return rows
    projects = Project.objects.filter(name=OuterRef(project))
    if backend is None:
        projects = projects.filter(backend__in=["", *settings.OBS_BACKENDS])
    else:
        projects = projects.filter(backend=OuterRef(backend))
    # Scalar subqueries are probed row by row; EXISTS would be joined with the whole table.
    rows = rows.alias(
        _hidden=_first(projects.filter(hidden=True)),
        _changed=_first(projects.filter(has_changed(), refreshed_at__isnull=False)),
    )
    shown = Q(_hidden=None, _changed=None)
    if settings.OBS_UNKNOWN_PROJECTS != "public":
        known = projects.exclude(refreshed_at=None).exclude(backend="")
        rows = rows.alias(_known=_first(known))
        shown &= Q(_known=1)
    return rows.filter(shown | Q(**{project: ""}))


def _first(projects: QuerySet[Project]) -> Subquery:
    return Subquery(projects.annotate(one=Value(1)).values("one")[:1])


class _Row(NamedTuple):
    """What is stored of a project."""

    backend: str
    name: str
    hidden: bool
    exists: bool
    refreshed_at: datetime | None
    changed: bool


def _projects(places: Collection[Place]) -> Mapping[Place, list[_Row]]:
    """Return the rows of these projects: those of all backends where the backend is unknown."""
    backends = {place.backend for place in places}
    if "" in backends:
        backends |= {*settings.OBS_BACKENDS}
    rows = (
        Project.objects.filter(backend__in=backends, name__in={place.project for place in places})
        .annotate(changed=has_changed())
        .values_list("backend", "name", "hidden", "exists", "refreshed_at", "changed")
    )
    of_places: dict[Place, list[_Row]] = defaultdict(list)
    for row in starmap(_Row, rows):
        of_places[Place(row.backend, row.name)].append(row)
        if row.backend:
            of_places[Place("", row.name)].append(row)
    return of_places


def _of_place(
    place: Place, rows: Sequence[_Row], holders: Mapping[Place, Readers]
) -> Readers | None:
    restricting = [
        _until_read(row.backend)
        if row.refreshed_at and row.changed
        else holders.get(Place(row.backend, row.name), NOBODY)
        for row in rows
        if row.hidden or (row.refreshed_at and row.changed)
    ]
    return _all_of(restricting) if restricting else _of_shown_or_unknown(place, rows)


def _of_shown_or_unknown(place: Place, rows: Sequence[_Row]) -> Readers | None:
    if place.backend and any(row.refreshed_at for row in rows):
        return None
    if settings.OBS_UNKNOWN_PROJECTS == "public":
        return None
    may_exist = is_name(place.project) and all(row.exists or row.changed for row in rows)
    return _until_read(place.backend) if may_exist else NOBODY


def _until_read(backend: str) -> Readers:
    return UNDECIDED if backend in settings.OBS_BACKENDS else NOBODY


def _holders(places: Collection[Place]) -> dict[Place, Readers]:
    """Return who holds any role in each of these projects."""
    if not places:
        return {}
    users: dict[Place, set[str]] = defaultdict(set)
    groups: dict[Place, set[str]] = defaultdict(set)
    rows = RoleHolder.objects.filter(
        Q(backend__in={place.backend for place in places}),
        Q(project__in={place.project for place in places}),
        package="",
    )
    for backend, project, user, group in rows.values_list("backend", "project", "user", "group"):
        users[Place(backend, project)].add(user)
        groups[Place(backend, project)].add(group)
    return {place: Readers.of(users[place], groups[place]) for place in places}


def _all_of(rules: Iterable[Readers | None]) -> Readers | None:
    """Return who may read what all of these restrict; None: everybody."""
    restricting = [rule for rule in rules if rule is not None]
    return reduce(and_, restricting) if restricting else None
