"""Give the sessions of one test to the next, reset as new ones are: to connect, and to learn the
tables anew, takes as long as a short test."""

import threading
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
_kept: dict[tuple[int, str], Session] = {}
"""The sessions of the last test, by thread and alias: another thread begins one of its own."""
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
    if session := _kept.pop(_key(wrapper), None):
        if _opened_with[session] == parameters and _is_alive(session):
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
            if other := _kept.pop(_key(wrapper), None):
                other.close()
            _kept[_key(wrapper)], wrapper.connection = session, None
    return True


def _key(wrapper: DatabaseWrapper) -> tuple[int, str]:
    return threading.get_ident(), wrapper.alias


def _is_alive(session: Session) -> bool:
    """Whether the server has not ended it meanwhile, as some tests let it."""
    try:
        session.execute("SELECT 1", prepare=False)
    except psycopg.Error:
        return False
    return True


def _is_reset(session: Session) -> bool:
    if session.info.transaction_status != TransactionStatus.IDLE or not session.autocommit:
        return False
    try:
        session._prepared.clear()
        session.execute("DISCARD ALL", prepare=False)
        session.execute("SELECT pg_stat_force_next_flush()", prepare=False)  # as its end would
    except psycopg.Error:  # the server has ended it
        return False
    return True
