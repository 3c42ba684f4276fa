"""Fork workers from a parent process that has imported the project: a start takes a third of the
CPU.

A test process starts one parent for each environment that is used a second time. The fork runs
`celery` from its first line on, without the import of the project. The first worker with an
environment is an ordinary process. So is each worker of tests/jobs/engine/workers/test_pools.py.
"""

import ctypes
import json
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SET_CHILD_SUBREAPER = 36
"""Of prctl(2): an orphan below this process becomes its child."""
_libc = ctypes.CDLL(None, use_errno=True)
Environment = frozenset[tuple[str, str]]
_parents: dict[Environment, subprocess.Popen[str]] = {}
_seen: set[Environment] = set()
"""Environments that a process was started with: a parent is worth its start for the second."""


class Fork(subprocess.Popen[bytes]):
    """A child of this process that another process has forked."""

    def __init__(self, pid: int, arguments: Sequence[str]) -> None:
        self.args, self.pid, self.returncode = list(arguments), pid, None  # type: ignore[assignment]
        self.stdin = self.stdout = self.stderr = None
        self._child_created, self._waitpid_lock = True, threading.Lock()
        self._sigint_wait_secs = 0.25


def start_celery(
    arguments: Sequence[str], env: dict[str, str], log: Path, *, warm: bool = True
) -> subprocess.Popen[bytes]:
    """Start `celery` with these arguments and this environment, in a session of its own; what it
    writes goes to the end of `log`. `warm`: fork it, if that saves anything."""
    parent = _parent(env) if warm else None
    if parent is None:
        with log.open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-m", "celery", *arguments],
                cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
    assert parent.stdin
    assert parent.stdout
    if _libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl: the fork would not be our child")
    parent.stdin.write(json.dumps({"arguments": list(arguments), "log": str(log)}) + "\n")
    try:
        parent.stdin.flush()
        pid = int(parent.stdout.readline())
    finally:
        _libc.prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    return Fork(pid, ["celery", *arguments])


def _parent(env: dict[str, str]) -> subprocess.Popen[str] | None:
    """Return the process to fork with this environment; None at its first use."""
    key = frozenset(pair for pair in env.items() if pair[0] != "PYTEST_CURRENT_TEST")
    if key not in _seen:
        _seen.add(key)
        return None
    parent = _parents.get(key)
    if parent is None or parent.poll() is not None:
        parent = _parents[key] = subprocess.Popen(
            [sys.executable, "-m", "tests.warm_start"],
            cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    return parent


def main() -> None:
    """Import the project, then fork for each line of the input until it ends."""
    import gc
    from importlib import import_module

    from tailrace.config.celery import app

    for name in ("celery.apps.worker", "celery.bin.celery", "celery.concurrency.prefork"):
        import_module(name)
    app.loader.import_default_modules()
    app.finalize()
    gc.freeze()
    for line in sys.stdin:
        assert threading.active_count() == 1, "a process with threads must not be forked"
        reader, writer = os.pipe()
        if not (pid := os.fork()):
            os.close(reader)
            _fork_again(json.loads(line), writer)
        os.close(writer)
        os.waitpid(pid, 0)  # its child is an orphan from now on
        with os.fdopen(reader) as pipe:
            sys.stdout.write(pipe.read() + "\n")
        sys.stdout.flush()


def _fork_again(question: dict[str, Any], writer: int) -> None:
    if pid := os.fork():
        os.write(writer, str(pid).encode())
        os._exit(0)
    os.close(writer)
    os.setsid()
    output = os.open(question["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number in (1, 2):
        os.dup2(output, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.close(output)
    sys.argv = ["celery", *question["arguments"]]
    from celery.__main__ import main as celery_main

    from tailrace.config.startup import boot
    from tailrace.jobs.runtime import shutdown

    assert isinstance(shutdown._shared, mmap.mmap)
    shutdown._shared = mmap.mmap(-1, 8)  # the one that was made at import is shared by all forks
    boot.start()  # as tailrace.config.celery does when `celery` imports it
    boot.check_server(wait=True)
    sys.exit(celery_main())


if __name__ == "__main__":
    main()
