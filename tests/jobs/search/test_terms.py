"""What is typed into the search box is read, or answered with what to type."""

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from tailrace.jobs.platform.inspection.search.terms import InvalidSearch, Terms, parse


def test_terms_have_names_and_quotes() -> None:
    text = 'queue:shop.mail state:failed key:k lane:"two words" error:"timed out" order=42 a="b c"'
    terms = parse(text)
    assert (terms.queue, terms.state, terms.key) == ("shop.mail", "failed", "k")
    assert (terms.lane, terms.error) == ("two words", "timed out")
    assert terms.values == {"order": "42", "a": "b c"}
    assert parse("id:7 event:8") == Terms(id=7, event=8)
    assert parse("") == parse("  ") == Terms()


@pytest.mark.parametrize(
    "text", ["home:alice/hello", "timed out", "a.b-c/d", "100%", "x_y\\z", "'"]
)
def test_words_have_no_name(text: str) -> None:
    assert parse(text) == Terms(words=text)


def test_times_are_utc_or_ago(clock) -> None:
    assert parse("since:2026-11-21T08:00").since == datetime(2026, 11, 21, 8, tzinfo=UTC)
    assert parse("until:2026-11-21T08:00+02:00").until == datetime(2026, 11, 21, 6, tzinfo=UTC)
    assert parse("since:2026-11-21").since == datetime(2026, 11, 21, tzinfo=UTC)
    assert parse('since:"2026-1-5 8:00"').since == datetime(2026, 1, 5, 8, tzinfo=UTC)
    assert parse("since:604800s").since is not None
    assert parse("since:2026-1-5").since == datetime(2026, 1, 5, tzinfo=UTC)
    for text in ("2h", "120m", "7200s"):
        since = parse(f"since:{text}").since
        assert since is not None
        assert timedelta(0) <= clock.now() - since - timedelta(hours=2) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id:x", "id: takes a number, such as id:42."),
        ("event:-1", "event: takes a number"),
        (f"id:{'9' * 30}", "id: takes a number"),
        ("state:done", "state: takes one of waiting, pending"),
        ("since:soon", "since:2h or since:3d"),
        ("since:2026-99-99", "takes a time in UTC"),
        ("since:0001-01-01T00:00+15:00", "takes a time in UTC"),
        ("since:99999999d", "takes a time in UTC"),
        ("quue:x", "did you mean 'queue'?"),
        ("queue:a queue:b", "queue: was given twice"),
        ('error:"timed out', "A quotation mark is not closed"),
        ('error:" "', "Enter a value after error:"),
        ("a\0b", "not contain control characters"),
        ("x" * 401, "at most 400 characters"),
        ("a b c d e f g h i j k", "at most 10 words"),
    ],
)
def test_what_cannot_be_read_says_what_to_type(text: str, says: str) -> None:
    with pytest.raises(InvalidSearch, match=says.replace("?", r"\?")):
        parse(text)


@pytest.mark.parametrize("text", ['"' * 400, "a:" * 200, "a=" * 200, "a" * 400, "since:" * 66])
def test_no_text_takes_long(text: str) -> None:
    began = time.thread_time()
    with suppress(InvalidSearch):
        parse(text)
    assert time.thread_time() - began < 2
