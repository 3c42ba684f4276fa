"""The X-OBS-* headers of mails, for the mail filters of recipients.

Names and values are the same as in `custom_headers` of the classes in OBS (app/models/event/).
"""

from collections.abc import Iterator, Mapping
from typing import Any

Payload = Mapping[str, Any]
Headers = dict[str, str]

MAX_ACTIONS = 20
"""Maximum number of a request's actions that get headers of a mail, or a commit status."""


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
    """Return the headers of a request, its actions, and its review, if any (request.rb)."""
    headers = {
        "X-OBS-Request-Creator": _text(payload, "author"),
        "X-OBS-Request-Id": _text(payload, "number"),
        "X-OBS-Request-State": _text(payload, "state"),
    }
    for index, action in enumerate(actions_of(payload)):
        prefix = f"X-OBS-Request-Action-{index}" if index else "X-OBS-Request-Action"
        target = "targetpackage" if action.get("targetpackage") else "targetrepository"
        headers |= {
            f"{prefix}-type": _text(action, "type"),
            f"{prefix}-target": _path(action, "targetproject", target),
            f"{prefix}-source": _path(action, "sourceproject", "sourcepackage"),
        }
    return headers | _review_headers(payload)


def _review_headers(payload: Payload) -> Headers:
    """Return the header with the first reviewer that the payload names."""
    kinds = ("user", "group", "package")
    kind = next((kind for kind in kinds if payload.get(f"by_{kind}")), "project")
    keys = ("by_project", "by_package") if kind == "package" else (f"by_{kind}",)
    return {f"X-OBS-Review-By_{kind.capitalize()}": _path(payload, *keys)}


def actions_of(payload: Payload) -> Iterator[Payload]:
    """Yield a request's actions, at most MAX_ACTIONS."""
    actions = payload.get("actions")
    for action in actions[:MAX_ACTIONS] if isinstance(actions, list) else ():
        if isinstance(action, dict):
            yield action


def _path(payload: Payload, *keys: str) -> str:
    """Return the values as `first/second`, without the missing ones."""
    return "/".join(filter(None, (_text(payload, key) for key in keys)))


def _text(payload: Payload, key: str) -> str:
    value = payload.get(key)
    return str(value) if isinstance(value, str | int) else ""
