"""The X-OBS-* headers of mails, for the mail filters of recipients.

Names and values are the same as in `custom_headers` of the classes in OBS (app/models/event/).
"""

from collections.abc import Iterator, Mapping
from typing import Any

Payload = Mapping[str, Any]
Headers = dict[str, str]

MAX_ACTIONS = 20
"""Maximum number of a request's actions for which a mail has headers."""


def package_headers(payload: Payload) -> Headers:
    return {"X-OBS-Package": _path(payload, "project", "package")}


def build_headers(payload: Payload) -> Headers:
    """Return the headers of a failed build (build_fail.rb)."""
    return package_headers(payload) | {
        "X-OBS-Repository": _path(payload, "repository", "arch"),
        "X-OBS-Worker": _text(payload, "workerid"),
        "X-OBS-Rebuild-Reason": _text(payload, "reason"),
    }


def commenter_headers(payload: Payload) -> Headers:
    """Return the header of a comment on any subject (comment_event.rb)."""
    return {"X-OBS-Request-Commenter": _text(payload, "commenter")}


def request_headers(payload: Payload) -> Headers:
    """Return the headers of a request, its actions, and the review that the event is about, if any
    (request.rb)."""
    headers = {
        "X-OBS-Request-Creator": _text(payload, "author"),
        "X-OBS-Request-Id": _text(payload, "number"),
        "X-OBS-Request-State": _text(payload, "state"),
    }
    for index, action in enumerate(_actions(payload)):
        prefix = f"X-OBS-Request-Action-{index}" if index else "X-OBS-Request-Action"
        target = "targetpackage" if action.get("targetpackage") else "targetrepository"
        headers |= {
            f"{prefix}-type": _text(action, "type"),
            f"{prefix}-target": _path(action, "targetproject", target),
            f"{prefix}-source": _path(action, "sourceproject", "sourcepackage"),
        }
    return headers | _review_headers(payload)


def _review_headers(payload: Payload) -> Headers:
    """Return the header with the reviewer: the first of user, group, package and project that the
    payload names."""
    if payload.get("by_user"):
        return {"X-OBS-Review-By_User": _text(payload, "by_user")}
    if payload.get("by_group"):
        return {"X-OBS-Review-By_Group": _text(payload, "by_group")}
    if payload.get("by_package"):
        return {"X-OBS-Review-By_Package": _path(payload, "by_project", "by_package")}
    return {"X-OBS-Review-By_Project": _text(payload, "by_project")}


def _actions(payload: Payload) -> Iterator[Payload]:
    actions = payload.get("actions")
    for action in actions[:MAX_ACTIONS] if isinstance(actions, list) else ():
        if isinstance(action, dict):
            yield action


def _path(payload: Payload, first: str, second: str) -> str:
    """Return the two values as `first/second`, without a missing one; empty if both are missing."""
    return "/".join(filter(None, (_text(payload, first), _text(payload, second))))


def _text(payload: Payload, key: str) -> str:
    value = payload.get(key)
    return str(value) if isinstance(value, str | int) else ""
