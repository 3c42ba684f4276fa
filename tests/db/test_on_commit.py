"""What is done after a commit cannot fail the code that has committed."""

import logging
from functools import partial

import pytest
from django.db import transaction

from tailrace.db import connections

pytestmark = pytest.mark.django_db(transaction=True)


def fails(words: str) -> None:
    raise RuntimeError(words)


def test_an_error_after_the_commit_is_logged_with_the_name_of_the_call(caplog) -> None:
    done: list[int] = []
    with caplog.at_level(logging.ERROR, "django.db.backends.base"), transaction.atomic():
        connections.on_commit(fails, "as ever")
        connections.on_commit(done.append, 1)
        assert done == []
    assert done == [1]
    assert "fails" in caplog.text
    assert "as ever" in caplog.text


def test_without_a_transaction_it_is_done_at_once(caplog) -> None:
    connections.on_commit(fails, "at once")
    assert "at once" in caplog.text


def test_nothing_is_done_after_a_rollback() -> None:
    done: list[int] = []
    with transaction.atomic():
        connections.on_commit(done.append, 1)
        transaction.set_rollback(True)
    assert done == []


def test_django_alone_raises_where_the_call_has_no_name() -> None:
    """Why `connections.on_commit` takes the arguments: a later Django may not need it."""
    with pytest.raises(AttributeError, match="__qualname__"):
        transaction.on_commit(partial(fails, "x"), robust=True)
