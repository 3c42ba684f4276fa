"""Failures that differ in numbers, ids, quotes and addresses alone are alike."""

import time
import traceback

import pytest

from tailrace.jobs.engine.failures.fingerprint import (
    Fingerprint,
    fingerprint,
    frame_in,
    frame_of,
    normalised,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 17 is gone", "order 99812 is gone"),
        ("took 1.5 s, of 10:30", "took 20 s, of 9:05"),
        (f"no {'a1' * 16}", f"no {'b2c3' * 10}"),
        ("row 0b6f1c9e-1234-4abc-9def-0123456789ab", "row 1b6f1c9e-9999-4abc-9def-0123456789ab"),
        ("<Widget at 0x7f3a>", "<Widget at 0xffff01>"),
        ("KeyError: 'anna'", "KeyError: 'it is bob'"),
        ('no "a"', 'no "b c"'),
        ("10.0.0.1:5432 refused", "192.168.11.12:80 refused"),
        ("[fe80::1:2] refused", "[2001:db8::7:1] refused"),
        ("mail to anna@example.org", "mail to bob.b@mail.example.com"),
        ("GET https://a.example/x?y=1 failed", "GET http://b.example/z failed"),
        ("a  b\nc", "a b c"),
    ],
)  # fmt: skip
def test_what_differs_from_job_to_job_is_replaced(one: str, other: str) -> None:
    assert normalised(one) == normalised(other) != one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("connection refused", "connection reset"),
        ("no order", "no invoice"),
        ("accede to it", "decade of it"),
    ],
)
def test_words_stay(one: str, other: str) -> None:
    assert normalised(one) == one
    assert normalised(one) != normalised(other)


@pytest.mark.parametrize(
    "text",
    ["'" * 100_000, "a@" * 50_000, "1." * 50_000, "a:" * 50_000, "0x" * 50_000, "f1" * 50_000,
     "http://" * 20_000, "a.b-" * 25_000, " " * 100_000, "‘" * 100_000, "\ud800" * 100],
    ids=range(11),
)  # fmt: skip
def test_no_message_takes_long(text: str) -> None:
    began = time.thread_time()
    assert len(normalised(text)) <= 300
    assert time.thread_time() - began < 2


def test_handler_class_frame_and_message_make_a_group() -> None:
    base = fingerprint("shop.mail", "builtins.ValueError", "no 5", "shop/handlers.py in handle")
    others = [
        fingerprint("shop.bill", "builtins.ValueError", "no 5", "shop/handlers.py in handle"),
        fingerprint("shop.mail", "builtins.KeyError", "no 5", "shop/handlers.py in handle"),
        fingerprint("shop.mail", "builtins.ValueError", "not 5", "shop/handlers.py in handle"),
        fingerprint("shop.mail", "builtins.ValueError", "no 5", "shop/handlers.py in send"),
    ]
    assert len({base.id, *(group.id for group in others)}) == 5
    assert base == Fingerprint(base.handler, base.error_class, base.frame, "no <n>")
    assert 0 <= base.id < 2**63
    assert base.id == 7761230818538258674, "the same in each process and each release"


def caught() -> BaseException:
    try:
        int("x" if time else "y")
        raise AssertionError
    except ValueError as error:
        try:
            raise KeyError("k") from error
        except KeyError as outer:
            return outer


def test_the_frame_is_the_innermost_of_our_code_as_raised_and_as_stored() -> None:
    error = caught()
    text = "".join(traceback.format_exception(error))
    name = "tests/jobs/failures/test_fingerprint.py in caught"
    assert (frame_of(error), frame_in(text)) == (name, name)
    assert (frame_of(None), frame_of(ValueError("x")), frame_in("")) == ("", "", "")


def test_frames_of_python_and_of_packages_are_passed_over() -> None:
    def load() -> None:
        import json

        json.loads("{")

    with pytest.raises(ValueError) as raised:
        load()
    assert frame_of(raised.value) == "tests/jobs/failures/test_fingerprint.py in load"
