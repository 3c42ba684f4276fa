"""Mark the tests whose code, or whose fixtures, start a worker or read a queue at the broker.

Tests with the mark `broker` also run on RabbitMQ. Names that a function imports, and attributes of
modules, are not followed.
"""

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests import kit


def mark(items: list[pytest.Item]) -> None:
    """Mark the tests that use the broker."""
    for item in items:
        if isinstance(item, pytest.Function) and any(map(_uses_broker, _functions(item))):
            item.add_marker(pytest.mark.broker)


def _functions(item: pytest.Function) -> Iterator[Any]:
    """Yield the functions of a test and of its fixtures."""
    yield item.function
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        for definition in definitions:
            yield definition.func


_known: dict[Any, bool] = {}


def _uses_broker(function: Any) -> bool:
    """Return whether a function starts a worker or reads a queue at the broker, itself or through
    other functions of the tests."""
    if function not in _known:
        _known[function] = function in (kit.worker, kit.broker_length, kit.empty_broker)
        _known[function] |= any(map(_uses_broker, _called_by(function)))
    return _known[function]


def _called_by(function: Any) -> Iterator[Any]:
    """Yield the callables whose names a function of the tests uses."""
    function = getattr(function, "__wrapped__", function)
    if isinstance(function, FunctionType) and function.__module__.startswith("tests."):
        for name in _names(function.__code__):
            if callable(called := function.__globals__.get(name)) and called.__hash__:
                yield called


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function and its inner functions refer to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
