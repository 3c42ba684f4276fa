"""hidden: projects that nobody may read of but those who hold a role in them."""

from functools import reduce
from typing import Any

from domains.builds.models import Project, RoleHolder
from domains.builds.origin import backend_of
from events.publish import Recorded
from subscriptions.roles import Receivers

_NAMED = ("project", "project_name", "sourceproject", "targetproject")


def readers(event: Recorded) -> Receivers | None:
    """Return who holds a role in each hidden project that the event names; None: none is."""
    names = _projects(event.payload)
    if not names:
        return None
    backend = backend_of(event)
    hidden = Project.objects.filter(backend=backend, name__in=names, hidden=True)
    found: dict[str, list[tuple[str, str]]] = {
        name: [] for name in hidden.values_list("name", flat=True)
    }
    if not found:
        return None
    rows = RoleHolder.objects.filter(backend=backend, project__in=found, package="")
    for project, user, group in rows.values_list("project", "user", "group"):
        found[project].append((user, group))
    return reduce(
        _both,
        (
            Receivers.of((user for user, _ in those), (group for _, group in those))
            for those in found.values()
        ),
    )


def _both(one: Receivers, other: Receivers) -> Receivers:
    return Receivers(one.users & other.users, one.groups & other.groups)


def _projects(payload: Any) -> set[str]:
    """Return the projects that a payload names, in its actions too."""
    places = [payload, *(payload.get("actions") or [])] if isinstance(payload, dict) else []
    return {
        place[key]
        for place in places
        if isinstance(place, dict)
        for key in _NAMED
        if isinstance(place.get(key), str) and place[key]
    }
