"""Give the sessions of one test to the next, reset as new ones are: to connect, and to learn the
tables anew, takes as long as a short test."""

from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.backends.postgresql.psycopg_any import IsolationLevel
from django.test import TransactionTestCase
from psycopg.pq import TransactionStatus

Session = psycopg.Connection[Any]
_opened_with: WeakKeyDictionary[Session, dict[str, Any]] = WeakKeyDictionary()
"""What each session was opened with."""
_kept: dict[str, Session] = {}
"""The session of the last test, by alias."""
_connect = DatabaseWrapper.get_new_connection


def use(patch: Any) -> None:
    """Keep sessions from now on, as long as the patches last."""
    patch.setattr(DatabaseWrapper, "get_new_connection", _take_or_connect)
    patch.setattr(TransactionTestCase, "_should_reload_connections", _keep)


def end() -> None:
    """Close what is kept."""
    while _kept:
        _kept.popitem()[1].close()


def backends() -> set[int]:
    """Return the process ids of the servers of all sessions that this process has opened."""
    return {each.info.backend_pid for each in list(_opened_with) if not each.closed}


def _take_or_connect(wrapper: DatabaseWrapper, parameters: dict[str, Any]) -> Session:
    """Return a session that was opened with the same parameters."""
    if session := _kept.pop(wrapper.alias, None):
        if _opened_with[session] == parameters and not session.closed:
            wrapper.isolation_level = IsolationLevel.READ_COMMITTED  # as _connect does
            return session
        session.close()
    session = _connect(wrapper, parameters)
    _opened_with[session] = parameters
    return session


def _keep(test: TransactionTestCase) -> bool:
    """Keep the sessions of this thread, if nothing is open in them; Django closes the others."""
    for wrapper in connections.all(initialized_only=True):
        session = wrapper.connection
        if session and session in _opened_with and _is_reset(session):
            end_of_other = _kept.pop(wrapper.alias, None)
            if end_of_other:
                end_of_other.close()
            _kept[wrapper.alias], wrapper.connection = session, None
    return True


def _is_reset(session: Session) -> bool:
    if session.info.transaction_status != TransactionStatus.IDLE or not session.autocommit:
        return False
    try:
        session._prepared.clear()
        session.execute("DISCARD ALL", prepare=False)
    except psycopg.Error:  # the server has ended it
        return False
    return True
