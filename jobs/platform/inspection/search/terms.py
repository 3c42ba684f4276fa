"""Parse the text of the search box: `queue:shop.mail error:"timed out" order=42`."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.dateparse import parse_date, parse_datetime

from tailrace.db import clock
from tailrace.db.row_ids import row_id
from tailrace.db.times import in_utc
from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.runtime.states import State

MAX_LENGTH = 400
MAX_TERMS = 10
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TOKEN = re.compile(r'(?:([A-Za-z_][\w.]{0,60})([:=]))?(?:"([^"]{0,300})"|([^\s"]{1,300}))')
_DURATION = re.compile(r"(\d{1,8})([smhd])")


class InvalidSearch(ValueError):
    """The text cannot be searched for; the message is for the user."""


@dataclass(slots=True)
class Terms:
    """The terms of a search; empty terms are not used."""

    id: int | None = None
    event: int | None = None
    flow: int | None = None
    queue: str = ""
    state: str = ""
    subject: str = ""
    """The start of the event's subject."""
    key: str = ""
    lane: str = ""
    error: str = ""
    since: datetime | None = None
    until: datetime | None = None
    values: dict[str, str] = field(default_factory=dict)
    """Values of payload fields by name."""
    words: str = ""
    """The words without a term name."""

    def reveals_hidden(self) -> bool:
        """Return whether a match reveals something that the job's row may hide."""
        named = self.subject or self.key or self.lane or self.error or self.values
        return bool(named or self.words)


def parse(text: str) -> Terms:
    """Return the terms of the text. Raises InvalidSearch."""
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise InvalidSearch(f"A search may have at most {MAX_LENGTH} characters.")
    if "\0" in text or not text.isprintable():
        raise InvalidSearch("A search must not contain control characters.")
    terms, end = Terms(), 0
    words: list[str] = []
    tokens = list(_TOKEN.finditer(text))
    if len(tokens) > MAX_TERMS:
        raise InvalidSearch(f"A search may have at most {MAX_TERMS} words and terms.")
    for token in tokens:
        if text[end : token.start()].strip():
            break
        end = token.end()
        _add(terms, words, token)
    if text[end:].strip():
        raise InvalidSearch(
            'A quotation mark is not closed; write, for example, error:"timed out".'
        )
    terms.words = " ".join(words)
    return terms


def _add(terms: Terms, words: list[str], token: re.Match[str]) -> None:
    name, sign, quoted, plain = token.groups()
    value = plain if quoted is None else quoted
    if name is None:
        words.append(value)
    elif sign == "=":
        terms.values[name] = value
    elif name in _READERS:
        if getattr(terms, name):
            raise InvalidSearch(f"{name}: was given twice; search for one value at a time.")
        setattr(terms, name, _READERS[name](name, value))
    elif hint := did_you_mean(name, _READERS):
        raise InvalidSearch(f"There is no term {name}:{hint}")
    else:  # e.g. the subject home:alice/hello
        words.append(token.group())


def _text(name: str, value: str) -> str:
    if not value.strip():
        raise InvalidSearch(f"Enter a value after {name}:")
    return value


def _number(name: str, value: str) -> int:
    if (id := row_id(value)) is None:
        raise InvalidSearch(f"{name}: takes a number, such as {name}:42.")
    return id


def _state(name: str, value: str) -> str:
    if value not in State.values:
        raise InvalidSearch(f"state: takes one of {', '.join(State.values)}.")
    return value


def seconds(text: str) -> int | None:
    """Return the seconds of a duration such as `2h` or `7d`; None if the text is no duration."""
    match = _DURATION.fullmatch(text)
    return int(match[1]) * UNITS[match[2]] if match else None


def time_of(text: str) -> datetime | None:
    """Return the time in the text, or None: a date or a time (in UTC unless it has another time
    zone; `2026-1-5 8:00` is one, too), or a duration before now such as `2h`."""
    try:
        if (duration := seconds(text)) is not None:
            return clock.now() - timedelta(seconds=duration)
        day = parse_date(text)
        at = datetime(day.year, day.month, day.day) if day else parse_datetime(text)
        return at and in_utc(at if at.tzinfo else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError):  # no such date, or before the year 1
        return None


def _time(name: str, value: str) -> datetime:
    if (at := time_of(value)) is None:
        raise InvalidSearch(
            f"{name}: takes a time in UTC or a duration before now: {name}:2026-11-21T08:00,"
            f" {name}:2h or {name}:3d."
        )
    return at


_READERS: dict[str, Callable[[str, str], Any]] = {
    "id": _number, "event": _number, "flow": _number, "queue": _text, "state": _state,
    "subject": _text, "key": _text, "lane": _text, "error": _text, "since": _time, "until": _time,
}  # fmt: skip
NAMES = tuple(_READERS)
