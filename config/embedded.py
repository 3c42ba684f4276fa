"""The engines that come with pip: PostgreSQL and Valkey under var/, for whoever sets no URLs.

Addresses can be computed without starting anything. `ensure` finds running engines or starts
them. Every process that uses them holds a shared lock on a file for as long as it lives; the one
that leaves last stops them. After a kill -9 of anything, the next `ensure` recovers.
"""

import atexit
import fcntl
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.engines import Account, EngineError, Postgres, Valkey

__all__ = ["EngineError", "Wanted", "broker_url", "database", "ensure", "stop"]

DATABASE = "tailrace"
PORT = 54329  # part of the socket's file name; nothing listens on a network port
SOCKET_PATH_LIMIT = 100  # the kernel's is 107 bytes, and a few less elsewhere


@dataclass(frozen=True)
class Wanted:
    """Which engines a process needs."""

    postgres: bool = True
    valkey: bool = True


@dataclass(frozen=True)
class Places:
    """Where the engines of one var folder keep their files."""

    home: Path
    sockets: Path

    @classmethod
    def of(cls, var_dir: Path) -> "Places":
        """Folders for `var_dir`: inside it, or outside where the engines could not reach them."""
        mark = hashlib.sha256(str(var_dir).encode()).hexdigest()[:10]
        home = var_dir / "engines"
        if os.geteuid() == 0 and not _open_to_all(home):
            home = Path("/var/tmp") / f"tailrace-{mark}"  # noqa: S108 - owner and mode are checked
        sockets = home / "run"
        if len(os.fsencode(sockets / f".s.PGSQL.{PORT}.lock")) > SOCKET_PATH_LIMIT:
            sockets = Path(tempfile.gettempdir()) / f"tailrace-{mark}-run"
        return cls(home, sockets)


def database(var_dir: Path) -> dict[str, Any]:
    """Django's description of the embedded database."""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": DATABASE,
        "USER": "postgres",
        "PASSWORD": "",
        "HOST": str(Places.of(var_dir).sockets),
        "PORT": str(PORT),
    }


def broker_url(var_dir: Path, number: int = 0) -> str:
    """Celery's address of the embedded Valkey, key space `number`."""
    socket = Places.of(var_dir).sockets / "valkey.sock"
    return f"redis+socket://{socket}?virtual_host={number}"


def ensure(var_dir: Path, wanted: Wanted | None = None) -> None:
    """Have the wanted engines run until this process ends. Safe to call again.

    Raises EngineError, with the way out, if an engine cannot be started.
    """
    wanted = wanted or Wanted()
    if not (wanted.postgres or wanted.valkey):
        return
    places = Places.of(var_dir)
    try:
        _make_home(places, var_dir)
        with _alone(places):
            _hold(places)
            for engine in _engines(places, wanted):
                engine.start()
    except OSError as error:
        raise EngineError(f"the embedded engines cannot run: {error}") from error


def stop(var_dir: Path) -> bool:
    """Stop the engines of `var_dir` if no other process uses them; whether they were stopped."""
    places = Places.of(var_dir)
    if not places.home.is_dir():
        return False
    return _stop(places)


_users: dict[Path, int] = {}


def _hold(places: Places) -> None:
    """Count this process among the users, until it ends."""
    if places.home in _users:
        return
    users = _open(places.home / "users.lock")
    fcntl.flock(users, fcntl.LOCK_SH)
    _users[places.home] = users
    atexit.register(_leave, places)


def _leave(places: Places) -> None:
    if places.home in _users and places.home.is_dir():
        _stop(places)


def _forget_in_child() -> None:
    """A forked child is no user: it must neither hold its parent's lock nor stop the engines."""
    for users in _users.values():
        os.close(users)
    _users.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def _stop(places: Places) -> bool:
    with _alone(places):
        users = _users.pop(places.home, None) or _open(places.home / "users.lock")
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            for engine in reversed(_engines(places, Wanted())):
                engine.stop()
            return True
        finally:
            os.close(users)


@contextmanager
def _alone(places: Places) -> Iterator[None]:
    """Only one process at a time starts or stops engines."""
    lock = _open(places.home / "start.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _engines(places: Places, wanted: Wanted) -> list[Postgres | Valkey]:
    account = Account.unprivileged()
    engines: list[Postgres | Valkey] = []
    if wanted.postgres:
        engines.append(Postgres(places.home, places.sockets, account, PORT, DATABASE))
    if wanted.valkey:
        engines.append(Valkey(places.home, places.sockets, account))
    return engines


def _make_home(places: Places, var_dir: Path) -> None:
    """Make the folders, and refuse one that somebody else has put there."""
    outside = var_dir not in places.home.parents
    if outside and not places.home.exists():
        print(
            f"tailrace: {var_dir} is closed to the engines' user, their files are in {places.home}",
            file=sys.stderr,
        )
    places.home.mkdir(parents=True, exist_ok=True, mode=0o755)
    if places.home.stat().st_uid != os.geteuid():
        raise EngineError(f"{places.home} belongs to another user; set TAILRACE_VAR to a folder")


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _open_to_all(folder: Path) -> bool:
    """Whether every existing folder on the way may be entered by any user."""
    return all(
        parent.stat().st_mode & stat.S_IXOTH
        for parent in (folder, *folder.parents)
        if parent.exists()
    )
