"""Receiver roles of build-service events: who stands in a relation to what an event is about.

What an event does not say, and no metadata told us, is nobody: the reviewers of a request are
those that the event itself names, for Tailrace does not keep requests.
"""

from collections.abc import Callable, Iterator
from typing import Any

from domains.builds.event_types import Report, Unknown
from domains.builds.holders import (
    Place,
    holders,
    moderators,
    token_holders,
    watchers_of_packages,
    watchers_of_projects,
    watchers_of_request,
)
from domains.builds.models import TokenHolder
from domains.builds.origin import backend_of
from events.models import Event
from events.publish import Recorded
from events.types import find_type
from subscriptions.roles import Receivers, role

Find = Callable[[Recorded], Receivers]


def _place(payload: dict[str, Any]) -> Place:
    return Place(
        _text(payload.get("project") or payload.get("project_name")),
        _text(payload.get("package") or payload.get("package_name")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _actions(payload: dict[str, Any], side: str) -> list[Place]:
    """Return what a request's actions take from (`source`) or change (`target`)."""
    return [
        Place(_text(action.get(f"{side}project")), _text(action.get(f"{side}package")))
        for action in payload.get("actions") or []
        if isinstance(action, dict)
    ]


# --- of the project and package that the event names ---


def _holders_of_place(name: str) -> Find:
    return lambda event: holders(backend_of(event), name, [_place(event.payload)])


for _name in ("maintainer", "bugowner", "reader"):
    role(_name, by_default=_name != "reader")(_holders_of_place(_name))


@role("project_watcher")
def project_watcher(event: Recorded) -> Receivers:
    return watchers_of_projects([_place(event.payload).project])


@role("package_watcher")
def package_watcher(event: Recorded) -> Receivers:
    return watchers_of_packages([_place(event.payload)])


# --- of a request and its actions ---


def _maintainer_of(side: str) -> Find:
    return lambda event: holders(backend_of(event), "maintainer", _actions(event.payload, side))


def _project_watcher_of(side: str) -> Find:
    return lambda event: watchers_of_projects(p.project for p in _actions(event.payload, side))


def _package_watcher_of(side: str) -> Find:
    return lambda event: watchers_of_packages(_actions(event.payload, side))


for _side in ("source", "target"):
    role(f"{_side}_maintainer")(_maintainer_of(_side))
    role(f"{_side}_project_watcher")(_project_watcher_of(_side))
    role(f"{_side}_package_watcher")(_package_watcher_of(_side))


@role("request_watcher")
def request_watcher(event: Recorded) -> Receivers:
    number = _number(event.payload.get("number") or event.payload.get("request_number"))
    return Receivers() if number is None else watchers_of_request(number)


@role("creator")
def creator(event: Recorded) -> Receivers:
    return Receivers.of([_text(event.payload.get("author"))])


@role("reviewer")
def reviewer(event: Recorded) -> Receivers:
    """Users and groups asked by name, and the maintainers of projects and packages asked."""
    reviews = list(_reviews(event.payload))
    places = [
        Place(_text(review.get("by_project")), _text(review.get("by_package")))
        for review in reviews
    ]
    named = Receivers.of(
        (_text(review.get("by_user")) for review in reviews),
        (_text(review.get("by_group")) for review in reviews),
    )
    return named | holders(backend_of(event), "maintainer", places)


def _reviews(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield payload
    yield from (review for review in payload.get("reviewers") or [] if isinstance(review, dict))


# --- of comments ---


@role("commenter")
def commenter(event: Recorded) -> Receivers:
    """Those who commented before; the writer of this comment is its actor, and hears nothing."""
    named = event.payload.get("commenters")
    before = [str(name) for name in named] if isinstance(named, list) else []
    return Receivers.of([*before, _text(event.payload.get("commenter"))])


# --- of reports and what became of them ---


@role("moderator")
def moderator(event: Recorded) -> Receivers:
    return moderators()


@role("reporter")
def reporter(event: Recorded) -> Receivers:
    return Receivers.of(_text(report.payload.get("reporter")) for report in _reports(event))


@role("offender")
def offender(event: Recorded) -> Receivers:
    """Whose content was reported: its writer, or the maintainers of the project or package."""
    found = Receivers()
    for report in _reports(event):
        payload = report.payload
        writers = [_text(payload.get("accused")), _text(payload.get("commenter"))]
        place = _place(payload) if payload.get("reportable_type") in OWNED else Place("")
        found |= Receivers.of(writers) | holders(backend_of(event), "maintainer", [place])
    return found


OWNED = ("Package", "Project")


def _reports(event: Recorded) -> list[Any]:
    """Return the reports that the event speaks of: a decision names the last one."""
    if event.payload.get("reporter"):
        return [event]
    number = _number(event.payload.get("report_last_id"))
    if number is None:
        return []
    about = Event.objects.filter(subject=f"report/{number}").order_by("id")[:20]
    return [report for report in about if issubclass(find_type(report.type) or Unknown, Report)]


# --- of people ---


@role("any_role")
def any_role(event: Recorded) -> Receivers:
    """Who got or lost a role."""
    payload = event.payload
    return Receivers.of([_text(payload.get("user"))], [_text(payload.get("group"))])


@role("member")
def member(event: Recorded) -> Receivers:
    return Receivers.of([_text(event.payload.get("member"))])


@role("assignee")
def assignee(event: Recorded) -> Receivers:
    return Receivers.of([_text(event.payload.get("assignee"))])


@role("token_executor")
def token_executor(event: Recorded) -> Receivers:
    return _of_token(event, TokenHolder.Role.EXECUTOR)


@role("token_member")
def token_member(event: Recorded) -> Receivers:
    return _of_token(event, TokenHolder.Role.MEMBER)


def _of_token(event: Recorded, kind: str) -> Receivers:
    number = _number(event.payload.get("token_id"))
    return Receivers() if number is None else token_holders(number, kind)
