"""Processes that run the jobs of one queue, and are killed or stopped before their n-th statement.

`killable(env)` starts this file as a program. It forks for each run, so that a run takes
milliseconds; each has connections of its own, and the folder of imported files of its test. Chunks
are small here: few points take many transactions.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import forks

ROOT = Path(__file__).parents[2]


class Run:
    """Jobs of one queue, in a process that was stopped before one of its statements, or ended."""

    def __init__(self, program: "Killable", answer: dict[str, Any]) -> None:
        self._program = program
        self.pid: int = answer["pid"]
        self._read(answer)

    def go_on(self) -> "Run":
        """Let the process go on to its end."""
        self._read(self._program.ask({"continue": self.pid}))
        return self

    def _read(self, answer: dict[str, Any]) -> None:
        self.stopped: bool = answer["stopped"]
        self.killed: bool = answer["killed"]
        self.statements: int = answer["statements"]
        """All that were executed, if it was not killed."""


class Killable:
    """The program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.folder: Path | None = None
        """Folder of imported files; None: that of the environment."""

    def run(self, queue: str, kill_at: int = 0, stop_at: int = 0) -> Run:
        """Drain the queue until it is empty, or up to that statement of the handlers."""
        folder = self.folder and str(self.folder)
        question = {"queue": queue, "kill": kill_at, "stop": stop_at, "folder": folder}
        return Run(self, self.ask(question))

    def end(self) -> None:
        """Kill the processes that have stopped."""
        self.ask({"end": True})

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def killable(env: dict[str, str]) -> Iterator[Killable]:
    """Start the program with this environment, and kill it and its children at the end."""
    process = forks.Fork(
        ["-m", "tests.timeline.killable"],
        cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    with process:
        try:
            yield Killable(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _work(queue: str, kill_at: int, stop_at: int, folder: str | None, counts: int) -> None:
    from django.conf import settings
    from django.db import connection

    from tailrace.jobs.engine.drain import drain

    count = 0

    def counted(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if count == stop_at:
            os.kill(os.getpid(), signal.SIGSTOP)
        return execute(sql, params, many, context)

    if folder:
        settings.STORAGES["timeline"]["OPTIONS"]["location"] = folder
    with connection.execute_wrapper(counted):
        while drain(queue):
            pass
    os.write(counts, str(count).encode())


def _outcome(pid: int, counts: int) -> dict[str, Any]:
    """Wait until the process has ended or stopped."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    stopped = os.WIFSTOPPED(status)
    ended = not stopped and not os.WIFSIGNALED(status)
    number = int(os.read(counts, 20) or 0) if ended else 0
    killed = os.WIFSIGNALED(status)
    return {"pid": pid, "stopped": stopped, "killed": killed, "statements": number}


def main() -> None:
    import django

    django.setup()
    from django.conf import settings

    from tailrace.domains.timeline.imports.files.formats import gpx
    from tailrace.domains.timeline.imports.steps import (
        enrich,
        promote,
        stage,
        undo,
    )
    from tailrace.domains.timeline.imports.steps import runs as import_runs
    from tailrace.domains.timeline.points import geocoding

    settings.JOBS_WAKE = "inline"
    stage.ROWS_PER_COMMIT, import_runs.REPORT_SECONDS = 200, 0
    gpx.BATCH = 100
    promote.CHUNK = undo.CHUNK = 100
    enrich.BATCH = 5
    if geocoding.is_available():  # its data is read once, not in each process
        list(geocoding.name_places([(0.0, 0.0)]))
    runs: dict[int, int] = {}
    stopped: set[int] = set()
    for line in sys.stdin:
        question = json.loads(line)
        if "end" in question:
            for pid in stopped:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                os.close(runs.pop(pid))
            stopped.clear()
            sys.stdout.write("{}\n")
            sys.stdout.flush()
            continue
        if pid := question.get("continue", 0):
            stopped.discard(pid)
            os.kill(pid, signal.SIGCONT)
        else:
            reader, writer = os.pipe()
            pid = os.fork()
            if not pid:
                status = 1
                try:
                    _work(
                        question["queue"], question["kill"], question["stop"],
                        question["folder"], writer,
                    )  # fmt: skip
                    status = 0
                finally:
                    os._exit(status)
            os.close(writer)
            runs[pid] = reader
        outcome = _outcome(pid, runs[pid])
        if outcome["stopped"]:
            stopped.add(pid)
        else:
            os.close(runs.pop(pid))
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
