"""Whether the errors of a response name places that are there: RFC 6901, read anew."""

from typing import Any
from urllib.parse import unquote


def assert_places(problem: dict[str, Any], body: Any) -> None:
    """Assert that each error of a 422 has one place, and that a pointer leads to a value of the
    body, or to where a missing one belongs."""
    assert problem["errors"], problem
    for error in problem["errors"]:
        places = {"pointer", "parameter", "header"} & error.keys()
        assert len(places) == 1, error
        if "pointer" in error and isinstance(body, dict | list):
            *parents, last = tokens(error["pointer"]) or [None]
            parent = follow(body, parents)
            if last is not None and not isinstance(parent, dict):
                follow(parent, [last])  # raises if there is nothing; null is something


def tokens(pointer: str) -> list[str]:
    """Return the parts of a pointer that is written as a URI's fragment."""
    assert pointer.isascii()
    assert pointer == "#" or pointer.startswith("#/"), pointer
    parts = unquote(pointer[1:]).split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def follow(value: Any, parts: list[Any]) -> Any:
    """Return what is there; KeyError, IndexError or ValueError if nothing is."""
    for part in parts:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
