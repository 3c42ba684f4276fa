"""Find the projects and packages in events, and the ones that determine an event's receivers."""

from collections.abc import Callable, Iterator
from typing import Any

from tailrace.domains.builds.backends.names import PackageRef
from tailrace.events.publish import Recorded

Payload = dict[str, Any]


def package_of(payload: Payload) -> PackageRef:
    """Return the package that the payload names, or the project if it names no package."""
    return PackageRef(
        text(payload.get("project") or payload.get("project_name")),
        text(payload.get("package") or payload.get("package_name")),
    )


def packages_of_actions(payload: Payload, side: str) -> list[PackageRef]:
    """Return the source or target packages of a request's actions; `side` is source or target."""
    return [
        PackageRef(text(action.get(f"{side}project")), text(action.get(f"{side}package")))
        for action in payload.get("actions") or []
        if isinstance(action, dict)
    ]


def reviews(payload: Payload) -> Iterator[Payload]:
    """Yield the objects that name a reviewer: the payload and each object in its `reviewers`."""
    yield payload
    yield from (review for review in payload.get("reviewers") or [] if isinstance(review, dict))


def text(value: Any) -> str:
    """Return the value if it is text, else an empty string."""
    return value if isinstance(value, str) else ""


_OF_THE_EVENT = ("maintainer", "bugowner", "reader", "develpackage_or_package_maintainer")
HOLDERS_OF: dict[str, Callable[[Payload], list[PackageRef]]] = {
    **dict.fromkeys(_OF_THE_EVENT, lambda payload: [package_of(payload)]),
    "source_maintainer": lambda payload: packages_of_actions(payload, "source"),
    "target_maintainer": lambda payload: packages_of_actions(payload, "target"),
    "reviewer": lambda payload: [
        PackageRef(text(review.get("by_project")), text(review.get("by_package")))
        for review in reviews(payload)
    ],
}
"""For each role, the packages whose metadata names the holders. Takes the event's payload."""


def metadata_of_receivers(event: Recorded) -> set[PackageRef]:
    """Return the projects and packages whose metadata names receivers of the event."""
    roles = getattr(event.event_type, "receiver_roles", ())
    return {
        ref.sources
        for role in roles
        if role in HOLDERS_OF
        for ref in HOLDERS_OF[role](event.raw_payload)
        if ref.project
    }
