"""Hidden projects: only those who hold a role in them may read their events."""

from typing import Any

from domains.builds.backends.origin import backend_of
from domains.builds.models import Project, RoleHolder
from events.publish import Recorded
from subscriptions.types.roles import Receivers

PROJECT_KEYS = ("project", "project_name", "sourceproject", "targetproject")


def readers(event: Recorded) -> Receivers | None:
    """Return who holds a role in each hidden project that the event names; None: no restriction."""
    names = _projects(event.raw_payload)
    if not names:
        return None
    backend = backend_of(event)
    hidden = Project.objects.filter(backend=backend, name__in=names, hidden=True)
    holders: dict[str, list[tuple[str, str]]] = {
        name: [] for name in hidden.values_list("name", flat=True)
    }
    if not holders:
        return None
    rows = RoleHolder.objects.filter(backend=backend, project__in=holders, package="")
    for project, user, group in rows.values_list("project", "user", "group"):
        holders[project].append((user, group))
    users = [{user for user, _ in pairs} for pairs in holders.values()]
    groups = [{group for _, group in pairs} for pairs in holders.values()]
    return Receivers.of(set.intersection(*users), set.intersection(*groups))


def _projects(payload: Any) -> set[str]:
    """Return the projects that a payload names, in its actions too."""
    mappings = [payload, *(payload.get("actions") or [])] if isinstance(payload, dict) else []
    return {
        mapping[key]
        for mapping in mappings
        if isinstance(mapping, dict)
        for key in PROJECT_KEYS
        if isinstance(mapping.get(key), str) and mapping[key]
    }
