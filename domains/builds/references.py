"""The projects and packages that an event names, and those on which its receivers depend."""

from collections.abc import Callable, Iterator
from typing import Any

from tailrace.domains.builds.backends.names import PackageRef
from tailrace.events.publish import Recorded

Payload = dict[str, Any]


def package_of(payload: Payload) -> PackageRef:
    """Return the package that the payload is about, or its project."""
    return PackageRef(
        text(payload.get("project") or payload.get("project_name")),
        text(payload.get("package") or payload.get("package_name")),
    )


def packages_of_actions(payload: Payload, side: str) -> list[PackageRef]:
    """Return the packages that a request's actions read (`source`) or change (`target`)."""
    return [
        PackageRef(text(action.get(f"{side}project")), text(action.get(f"{side}package")))
        for action in payload.get("actions") or []
        if isinstance(action, dict)
    ]


def reviewing_packages(payload: Payload) -> list[PackageRef]:
    """Return the projects and packages whose maintainers review."""
    return [
        PackageRef(text(review.get("by_project")), text(review.get("by_package")))
        for review in reviews(payload)
    ]


def reviews(payload: Payload) -> Iterator[Payload]:
    """Yield the objects that say who reviews: the payload itself, and those in `reviewers`."""
    yield payload
    yield from (review for review in payload.get("reviewers") or [] if isinstance(review, dict))


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _package_alone(payload: Payload) -> list[PackageRef]:
    return [package_of(payload)]


HOLDERS_OF: dict[str, Callable[[Payload], list[PackageRef]]] = {
    "maintainer": _package_alone,
    "bugowner": _package_alone,
    "reader": _package_alone,
    "develpackage_or_package_maintainer": _package_alone,
    "source_maintainer": lambda payload: packages_of_actions(payload, "source"),
    "target_maintainer": lambda payload: packages_of_actions(payload, "target"),
    "reviewer": reviewing_packages,
}
"""By role: the packages in whose metadata its holders are found."""


def metadata_of_receivers(event: Recorded) -> set[PackageRef]:
    """Return the projects and packages in whose metadata the event's receivers are found."""
    roles = getattr(event.event_type, "receiver_roles", ())
    return {
        ref.sources
        for role in roles
        if role in HOLDERS_OF
        for ref in HOLDERS_OF[role](event.raw_payload)
        if ref.project
    }
