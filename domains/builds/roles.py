"""The receiver roles of build-service events.

Who holds a role follows from the event and the stored metadata only. For example, the reviewers of
a request are those that the event names, because Tailrace does not store requests.
"""

from collections.abc import Callable, Iterator
from typing import Any

from domains.builds.backends.origin import backend_of
from domains.builds.event_types.moderation import Report
from domains.builds.event_types.source_problems import Unknown
from domains.builds.models import TokenHolder
from domains.builds.receivers import (
    PackageRef,
    holders,
    moderators,
    token_holders,
    watchers_of_packages,
    watchers_of_projects,
    watchers_of_request,
)
from events.models import Event
from events.publish import Recorded
from subscriptions.types.roles import Receivers, role

Find = Callable[[Recorded], Receivers]


def _package(payload: dict[str, Any]) -> PackageRef:
    return PackageRef(
        _text(payload.get("project") or payload.get("project_name")),
        _text(payload.get("package") or payload.get("package_name")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _actions(payload: dict[str, Any], side: str) -> list[PackageRef]:
    """Return the packages that a request's actions read (`source`) or change (`target`)."""
    return [
        PackageRef(_text(action.get(f"{side}project")), _text(action.get(f"{side}package")))
        for action in payload.get("actions") or []
        if isinstance(action, dict)
    ]


# --- of the project and package that the event names ---


def _holders_of_package(name: str) -> Find:
    return lambda event: holders(backend_of(event), name, [_package(event.raw_payload)])


for _name in ("maintainer", "bugowner", "reader"):
    role(_name, by_default=_name != "reader")(_holders_of_package(_name))


@role("project_watcher")
def project_watcher(event: Recorded) -> Receivers:
    return watchers_of_projects([_package(event.raw_payload).project])


@role("package_watcher")
def package_watcher(event: Recorded) -> Receivers:
    return watchers_of_packages([_package(event.raw_payload)])


# --- of a request and its actions ---


def _maintainer_of(side: str) -> Find:
    return lambda event: holders(backend_of(event), "maintainer", _actions(event.raw_payload, side))


def _project_watcher_of(side: str) -> Find:
    return lambda event: watchers_of_projects(
        ref.project for ref in _actions(event.raw_payload, side)
    )


def _package_watcher_of(side: str) -> Find:
    return lambda event: watchers_of_packages(_actions(event.raw_payload, side))


for _side in ("source", "target"):
    role(f"{_side}_maintainer")(_maintainer_of(_side))
    role(f"{_side}_project_watcher")(_project_watcher_of(_side))
    role(f"{_side}_package_watcher")(_package_watcher_of(_side))


@role("request_watcher")
def request_watcher(event: Recorded) -> Receivers:
    number = _number(event.raw_payload.get("number") or event.raw_payload.get("request_number"))
    return Receivers() if number is None else watchers_of_request(number)


@role("reviewer")
def reviewer(event: Recorded) -> Receivers:
    """The users and groups that review, and the maintainers of projects and packages that do."""
    reviews = list(_reviews(event.raw_payload))
    packages = [
        PackageRef(_text(review.get("by_project")), _text(review.get("by_package")))
        for review in reviews
    ]
    reviewers = Receivers.of(
        (_text(review.get("by_user")) for review in reviews),
        (_text(review.get("by_group")) for review in reviews),
    )
    return reviewers | holders(backend_of(event), "maintainer", packages)


def _reviews(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield payload
    yield from (review for review in payload.get("reviewers") or [] if isinstance(review, dict))


# --- of comments ---


@role("commenter")
def commenter(event: Recorded) -> Receivers:
    """Who commented before. The author of this comment is its actor and is not notified."""
    names = event.raw_payload.get("commenters")
    earlier = [str(name) for name in names] if isinstance(names, list) else []
    return Receivers.of([*earlier, _text(event.raw_payload.get("commenter"))])


# --- of reports and decisions ---


@role("moderator")
def moderator(event: Recorded) -> Receivers:
    return moderators()


@role("reporter")
def reporter(event: Recorded) -> Receivers:
    return Receivers.of(_text(report.raw_payload.get("reporter")) for report in _reports(event))


@role("offender")
def offender(event: Recorded) -> Receivers:
    """The author of the reported content, or the maintainers of the reported project or package."""
    receivers = Receivers()
    for report in _reports(event):
        payload = report.raw_payload
        authors = [_text(payload.get("accused")), _text(payload.get("commenter"))]
        receivers |= Receivers.of(authors)
        if payload.get("reportable_type") in ("Package", "Project"):
            receivers |= holders(backend_of(event), "maintainer", [_package(payload)])
    return receivers


def _reports(event: Recorded) -> list[Recorded]:
    """Return the reports that the event is about; a decision names the last one."""
    if event.raw_payload.get("reporter"):
        return [event]
    number = _number(event.raw_payload.get("report_last_id"))
    if number is None:
        return []
    reports = Event.objects.filter(subject=f"report/{number}").order_by("id")[:20]
    recorded = map(Recorded.from_model, reports)
    return [report for report in recorded if issubclass(report.event_type or Unknown, Report)]


# --- of people ---


@role("any_role")
def any_role(event: Recorded) -> Receivers:
    """Who got or lost a role."""
    payload = event.raw_payload
    return Receivers.of([_text(payload.get("user"))], [_text(payload.get("group"))])


def _user_in(key: str) -> Find:
    return lambda event: Receivers.of([_text(event.raw_payload.get(key))])


for _name, _key in (("creator", "author"), ("member", "member"), ("assignee", "assignee")):
    role(_name)(_user_in(_key))


def _of_token(kind: TokenHolder.Role) -> Find:
    def find(event: Recorded) -> Receivers:
        number = _number(event.raw_payload.get("token_id"))
        return Receivers() if number is None else token_holders(number, kind)

    return find


role("token_executor")(_of_token(TokenHolder.Role.EXECUTOR))
role("token_member")(_of_token(TokenHolder.Role.MEMBER))
