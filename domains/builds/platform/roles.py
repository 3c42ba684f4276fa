"""The receiver roles of build-service events. Their holders are found in the event and in stored
metadata; for example, the reviewers of a request are in the event."""

from collections.abc import Callable

from tailrace.db.row_ids import row_id
from tailrace.domains.builds.audience import receivers
from tailrace.domains.builds.audience.receivers import holders
from tailrace.domains.builds.audience.references import (
    HOLDERS_OF,
    package_of,
    packages_of_actions,
    reviews,
    text,
)
from tailrace.domains.builds.backends.names import PackageRef
from tailrace.domains.builds.backends.origin import backend_of
from tailrace.domains.builds.event_types.moderation import Report
from tailrace.domains.builds.event_types.source_problems import Unknown
from tailrace.domains.builds.models import Package, TokenHolder
from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.subscriptions.types.roles import Receivers, role

Find = Callable[[Recorded], Receivers]
"""Finds the receivers of an event in one role."""


# --- of the project and package that the event names ---


def _find_holders(name: str, metadata_role: str) -> Find:
    """Return the function that finds the holders of `metadata_role` in the role's packages."""
    packages = HOLDERS_OF[name]
    return lambda event: holders(backend_of(event), metadata_role, packages(event.raw_payload))


for _name in ("maintainer", "bugowner", "reader"):
    role(_name, by_default=_name != "reader")(_find_holders(_name, _name))


@role("project_watcher")
def project_watcher(event: Recorded) -> Receivers:
    return receivers.watchers_of_projects([package_of(event.raw_payload).project])


@role("package_watcher")
def package_watcher(event: Recorded) -> Receivers:
    return receivers.watchers_of_packages([package_of(event.raw_payload)])


@role("develpackage_or_package_maintainer")
def develpackage_or_package_maintainer(event: Recorded) -> Receivers:
    """Return the maintainers of the package's development package, else of the package."""
    backend, package = backend_of(event), package_of(event.raw_payload).sources
    rows = Package.objects.filter(backend=backend, project=package.project, name=package.package)
    for devel in rows.exclude(devel_project="").values_list("devel_project", "devel_package"):
        package = PackageRef(*devel)
    return holders(backend, "maintainer", [package])


# --- of a request and its actions ---


def _find_project_watchers(side: str) -> Find:
    return lambda event: receivers.watchers_of_projects(
        ref.project for ref in packages_of_actions(event.raw_payload, side)
    )


def _find_package_watchers(side: str) -> Find:
    return lambda event: receivers.watchers_of_packages(
        packages_of_actions(event.raw_payload, side)
    )


for _side in ("source", "target"):
    role(f"{_side}_maintainer")(_find_holders(f"{_side}_maintainer", "maintainer"))
    role(f"{_side}_project_watcher")(_find_project_watchers(_side))
    role(f"{_side}_package_watcher")(_find_package_watchers(_side))


@role("request_watcher")
def request_watcher(event: Recorded) -> Receivers:
    payload = event.raw_payload
    number = row_id(str(payload.get("number") or payload.get("request_number")))
    return Receivers() if number is None else receivers.watchers_of_request(number)


@role("reviewer")
def reviewer(event: Recorded) -> Receivers:
    """Return the reviewers: users, groups, and maintainers of reviewing projects and packages."""
    named_reviews = list(reviews(event.raw_payload))
    reviewers = Receivers.of(
        (text(review.get("by_user")) for review in named_reviews),
        (text(review.get("by_group")) for review in named_reviews),
    )
    packages = HOLDERS_OF["reviewer"](event.raw_payload)
    return reviewers | holders(backend_of(event), "maintainer", packages)


# --- of comments ---


@role("commenter")
def commenter(event: Recorded) -> Receivers:
    """Return all commenters. The author of this comment is the actor, and so not notified."""
    names = event.raw_payload.get("commenters")
    earlier = map(str, names) if isinstance(names, list) else ()
    return Receivers.of([*earlier, text(event.raw_payload.get("commenter"))])


# --- of reports and decisions ---


@role("moderator")
def moderator(event: Recorded) -> Receivers:
    return receivers.moderators()


@role("reporter")
def reporter(event: Recorded) -> Receivers:
    return Receivers.of(text(report.raw_payload.get("reporter")) for report in _reports(event))


@role("offender")
def offender(event: Recorded) -> Receivers:
    """Return the authors of reported content, and the maintainers of projects and packages."""
    offenders = Receivers()
    for payload in (report.raw_payload for report in _reports(event)):
        offenders |= Receivers.of(text(payload.get(key)) for key in ("accused", "commenter"))
        if payload.get("reportable_type") in ("Package", "Project"):
            offenders |= holders(backend_of(event), "maintainer", [package_of(payload)])
    return offenders


def _reports(event: Recorded) -> list[Recorded]:
    """Return the report itself, or the reports that a decision's `report_last_id` names."""
    if event.raw_payload.get("reporter"):
        return [event]
    number = row_id(str(event.raw_payload.get("report_last_id")))
    if number is None:
        return []
    reports = Event.objects.filter(subject=f"report/{number}").order_by("id")[:20]
    recorded = map(Recorded.from_model, reports)
    return [report for report in recorded if issubclass(report.event_type or Unknown, Report)]


# --- of people ---


@role("any_role")
def any_role(event: Recorded) -> Receivers:
    """Return the user or group that got or lost a role."""
    payload = event.raw_payload
    return Receivers.of([text(payload.get("user"))], [text(payload.get("group"))])


def _find_named_user(key: str) -> Find:
    return lambda event: Receivers.of([text(event.raw_payload.get(key))])


for _name, _key in (("creator", "author"), ("member", "member"), ("assignee", "assignee")):
    role(_name)(_find_named_user(_key))


def _find_token_holders(kind: TokenHolder.Role) -> Find:
    def find(event: Recorded) -> Receivers:
        number = row_id(str(event.raw_payload.get("token_id")))
        return Receivers() if number is None else receivers.token_holders(number, kind)

    return find


role("token_executor")(_find_token_holders(TokenHolder.Role.EXECUTOR))
role("token_member")(_find_token_holders(TokenHolder.Role.MEMBER))
