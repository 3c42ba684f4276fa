"""Properties that the suite tests with few examples, and `make test-long` with many."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings


def few_and_many(
    base: settings, few: int, many: int, **strategies: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give the test this many examples, and add one to its module that is long and gets many. Its
    other decorators stand below this one: both have them."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        with_many = settings(base, max_examples=many)(given(**strategies)(test))
        test.__globals__[f"{test.__name__}_in_many_examples"] = pytest.mark.long(with_many)
        return settings(base, max_examples=few)(given(**strategies)(test))

    return decorate
