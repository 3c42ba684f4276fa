"""The worker of the project: a process of its own, as a team starts it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.celery_suite.project import celery_app as app
from tests.kit import ROOT

READY_SECONDS, END_SECONDS, IDLE_SECONDS = 60.0, 3.0, 15.0
POLL_SECONDS = 0.05
LOG = ROOT / "var" / "celery-suite" / "worker.log"


class Worker:
    """One child, as the suite's own worker has it: its tests count on that."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start the worker unless it runs; return when it is ready. Raises TimeoutError."""
        if self._process is not None and self._process.poll() is None:
            return
        celery = [sys.executable, "-m", "celery", "-A", "tests.celery_suite.project", "worker"]
        with LOG.open("ab") as log:
            self._process = subprocess.Popen(
                [*celery, "--concurrency", "1", "--loglevel", "INFO"],
                cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, env=os.environ | {"C_FORCE_ROOT": "1"},
            )  # fmt: skip
        until = time.monotonic() + READY_SECONDS
        while not self.ask("ping"):
            if self._process.poll() is not None or time.monotonic() > until:
                raise TimeoutError(f"the worker does not answer: see {LOG}")

    def ask(self, command: str, **arguments: Any) -> Any:
        """Return the worker's answer to a remote command; None without an answer."""
        answers = app.control.broadcast(
            command, arguments=arguments, reply=True, timeout=1.0, limit=1
        )
        return next(iter(answers[0].values())) if answers else None

    def stop(self) -> None:
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
                self._process.wait(END_SECONDS)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        self._process = None


def discard(path: Path = LOG) -> None:
    """Begin a new log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
