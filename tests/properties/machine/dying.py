"""A process that dies, or loses its connection, at some statement."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import InterfaceError, OperationalError, connections


class Died(BaseException):
    """The process died; the server rolls its transaction back."""


@contextmanager
def dying(after: int) -> Iterator[None]:
    """Let this process die where it would execute one more than so many statements; 0: it lives.
    Below 0 it lives, too, but after so many its connection is gone."""
    executed = 0

    def statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal executed
        if 0 < after <= executed:
            raise Died
        if executed == -after > 0:
            context["connection"].connection.close()
        executed += 1
        return execute(sql, params, many, context)

    try:
        with ExitStack() as wrapped:
            for alias in connections:
                wrapped.enter_context(connections[alias].execute_wrapper(statement))
            yield
    except Died:
        for opened in connections.all(initialized_only=True):
            if opened.connection is not None:
                opened.connection.close()  # whatever transaction it was in
            del connections[opened.alias]  # the next process begins anew
    except (OperationalError, InterfaceError):
        assert after < 0
    if after < 0:
        blocked = [one.alias for one in connections.all() if one.in_atomic_block]
        assert not blocked, "this process will never commit again"
        connections.close_all()
