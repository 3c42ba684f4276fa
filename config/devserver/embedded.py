"""The embedded engines: PostgreSQL and Valkey under var/, if DATABASE_URL or BROKER_URL is not set.

`ensure` finds running engines or starts them; `database` and `broker_url` start nothing. Each
process that uses the engines holds a shared lock on a file while it lives, and the last process
stops the engines. After a kill -9 of engines or processes, the next `ensure` recovers.
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

from tailrace.config.devserver.engine import Account, Engine, EngineError
from tailrace.environment import private_files

__all__ = ["EngineError", "Selection", "broker_url", "database", "ensure", "folder", "stop"]

DATABASE = "tailrace"
PORT = 54329  # part of the socket's file name; nothing listens on a network port
SOCKET_PATH_LIMIT = 100  # the kernel's is 107 bytes, and a few less elsewhere


@dataclass(frozen=True)
class Selection:
    postgres: bool = True
    valkey: bool = True


@dataclass(frozen=True)
class Folders:
    """The folders for the engines' files (`home`) and sockets of one var folder."""

    home: Path
    sockets: Path

    @classmethod
    def of(cls, var_dir: Path) -> "Folders":
        """Return the folders below `var_dir`, or below /var/tmp if the engines cannot enter
        `var_dir`."""
        mark = hashlib.sha256(str(var_dir).encode()).hexdigest()[:10]
        home = var_dir / "engines"
        if os.geteuid() == 0 and not _open_to_all(home):
            home = Path("/var/tmp") / f"tailrace-{mark}"  # noqa: S108 - owner and mode are checked
        sockets = home / "run"
        if len(os.fsencode(sockets / f".s.PGSQL.{PORT}.lock")) > SOCKET_PATH_LIMIT:
            sockets = Path(tempfile.gettempdir()) / f"tailrace-{mark}-run"
        return cls(home, sockets)


def folder(var_dir: Path) -> Path:
    """Return the folder with the files of the engines of `var_dir`: see `Folders.of`."""
    return Folders.of(var_dir).home


def database(var_dir: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": DATABASE,
        "USER": "postgres",
        "PASSWORD": "",
        "HOST": str(Folders.of(var_dir).sockets),
        "PORT": str(PORT),
    }


def broker_url(var_dir: Path) -> str:
    """Return Celery's URL of the embedded Valkey."""
    socket = Folders.of(var_dir).sockets / "valkey.sock"
    return f"redis+socket://{socket}?virtual_host=0"


def ensure(var_dir: Path, needed: Selection | None = None) -> None:
    """Start the engines if needed, and keep them running until this process ends. Safe to repeat.
    Raises EngineError, whose message says what to do."""
    needed = needed or Selection()
    if not (needed.postgres or needed.valkey):
        return
    folders = Folders.of(var_dir)
    try:
        _make_home(folders, var_dir)
        with _start_lock(folders):
            _register_user(folders)
            for engine in _engines(folders, needed):
                engine.start()
    except OSError as error:
        raise EngineError(f"the embedded engines cannot run: {error}") from error


def stop(var_dir: Path) -> bool:
    """Stop the engines of `var_dir` unless another process uses them; return whether it did."""
    folders = Folders.of(var_dir)
    return folders.home.is_dir() and _stop(folders)


_users: dict[Path, int] = {}
"""The file descriptors of the locks that this process holds, by the engines' folder."""


def _register_user(folders: Folders) -> None:
    """Hold a shared lock as a user of the engines until this process ends."""
    if folders.home in _users:
        return
    users = _open(folders.home / "users.lock")
    fcntl.flock(users, fcntl.LOCK_SH)
    _users[folders.home] = users
    atexit.register(_stop_at_exit, folders)


def _stop_at_exit(folders: Folders) -> None:
    if folders.home in _users and folders.home.is_dir():
        _stop(folders)


def _unregister_in_child() -> None:
    """Release the locks in a forked child: it must not hold its parent's lock or stop engines."""
    for users in _users.values():
        os.close(users)
    _users.clear()


os.register_at_fork(after_in_child=_unregister_in_child)


def _stop(folders: Folders) -> bool:
    with _start_lock(folders):
        users = _users.pop(folders.home, None) or _open(folders.home / "users.lock")
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            for engine in reversed(_engines(folders, Selection())):
                engine.stop()
            return True
        finally:
            os.close(users)


@contextmanager
def _start_lock(folders: Folders) -> Iterator[None]:
    """Hold the lock with which only one process at a time starts or stops engines."""
    lock = _open(folders.home / "start.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _engines(folders: Folders, needed: Selection) -> list[Engine]:
    # Imported here, since redis takes 8 MB and psutil 1 MB.
    from tailrace.config.devserver.postgres import Postgres
    from tailrace.config.devserver.valkey import Valkey

    account = Account.unprivileged()
    engines: list[Engine] = []
    if needed.postgres:
        engines.append(Postgres(folders.home, folders.sockets, account, PORT, DATABASE))
    if needed.valkey:
        engines.append(Valkey(folders.home, folders.sockets, account))
    return engines


def _make_home(folders: Folders, var_dir: Path) -> None:
    """Create the folder. Raises EngineError if it belongs to another user."""
    outside = var_dir not in folders.home.parents
    if outside and not folders.home.exists():
        print(
            f"tailrace: the user of the embedded engines cannot enter {var_dir}; the files of the"
            f" engines are in {folders.home}",
            file=sys.stderr,
        )
    private_files.make_folder(folders.home)
    if folders.home.stat().st_uid != os.geteuid():
        raise EngineError(
            f"{folders.home} belongs to another user; set TAILRACE_VAR to a folder of your own"
        )


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _open_to_all(folder: Path) -> bool:
    """Whether any user can enter every existing folder of the path."""
    return all(
        parent.stat().st_mode & stat.S_IXOTH
        for parent in (folder, *folder.parents)
        if parent.exists()
    )
