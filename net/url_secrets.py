"""URLs as they are shown and logged: without user, password and other parts that may be secrets."""

import re
from typing import Any

HIDDEN = "***"
_URL = re.compile(r"[A-Za-z][\w+.-]*://[^\s\"'<>`]+")
_SECRET_PART = re.compile(
    r"[^-_.:]{20,}|.*(?<![^-_.:])(?=[^-_.:]*[0-9])(?=[^-_.:]*[A-Za-z])[^-_.:]{10}.*"
)
"""A part of a path that may be a secret: long and in one piece, or with ten letters and digits in
one piece. Names such as `openSUSE:Leap:15.6` and `python311-django-tasks` have shorter pieces."""


def shown_url(url: str) -> str:
    """Return the URL with *** instead of its user and password, the values of its query, its
    fragment, and long parts of its path that may be secrets."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    _user, at, authority = authority.rpartition("@")
    address, number_sign, fragment = f"{authority}{slash}{path}".partition("#")
    address, question_mark, query = address.partition("?")
    host, *parts = address.split("/")
    shown = [HIDDEN if _SECRET_PART.fullmatch(part) else part for part in parts]
    return "".join(
        [
            scheme, separator, f"{HIDDEN}@" if at else "", "/".join([host, *shown]),
            question_mark, re.sub("[^&;]+", _shown_parameter, query),
            number_sign, HIDDEN if fragment else "",
        ]
    )  # fmt: skip


def without_url_secrets(text: str) -> str:
    """Return the text with each URL in it as `shown_url` returns it."""
    return _URL.sub(lambda match: shown_url(match[0]), text) if "://" in text else text


def json_without_url_secrets(value: Any) -> Any:
    """Return a copy of a JSON value with each URL in its texts as `shown_url` returns it."""
    match value:
        case str():
            return without_url_secrets(value)
        case list():
            return [json_without_url_secrets(each) for each in value]
        case dict():
            return {
                without_url_secrets(str(key)): json_without_url_secrets(each)
                for key, each in value.items()
            }
    return value


def _shown_parameter(match: re.Match[str]) -> str:
    name, equals_sign, _value = match[0].partition("=")
    return f"{name}={HIDDEN}" if equals_sign else HIDDEN
