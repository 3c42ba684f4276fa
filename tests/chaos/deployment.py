"""The deployment under test: real processes and engines, and a thread that restarts them."""

import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from tailrace.samples.builds.server import SampleBackend
from tests import forks
from tests.chaos.engines import Engines

ROOT = Path(__file__).parents[2]
TAILRACE = "tailrace"
SIDES = (TAILRACE, "early", "late")
START_SECONDS = 180
DISK_BYTES = 4_000_000
TIMEOUT = "3"
"""Seconds that the calls of a worker have when it is to end."""


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until the condition holds; fail with `what` when it does not within `seconds`."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)


@dataclass
class Process:
    """A command, and the process that runs it now."""

    command: list[str]
    environment: dict[str, str]
    running: subprocess.Popen[bytes]
    rests: bool = False
    """Whether it is not restarted when it has ended."""
    expected: bool = False
    """Whether its end was ours."""


@dataclass
class Deployment:
    """Web, workers, beats and a backend, with their own database and broker."""

    folder: Path
    side: str
    seed: int
    processes: dict[str, Process] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """What was done, in words."""
    crashed: list[str] = field(default_factory=list)
    """Processes that ended without our doing."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.engines = Engines(self.folder)
        self.effects = self.folder / "effects"
        self.effects.touch()
        self.long_calls_end = self.folder / "long-calls-end"
        self.long_calls_end.touch()
        self.backend = SampleBackend()
        self.backend_serves = threading.Thread(
            target=self.backend.serve_forever, args=[0.1], daemon=True
        )
        self.port = _free_port()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        self.bus_file = self.disk / "bus.ndjson"
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.has_disk = False
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTEST")
        } | {
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "SECRET_KEY": secrets.token_urlsafe(50),
            "DATABASE_URL": self.engines.database_url,
            "BROKER_URL": self.engines.broker_url,
            "CHAOS_SIDE": self.side,
            "CHAOS_EFFECTS": str(self.effects),
            "CHAOS_LONG_CALLS_END": str(self.long_calls_end),
            "CHAOS_CODE": "old",
            "SHUTDOWN_TIMEOUT": TIMEOUT,
            "TAILRACE_VAR": str(self.folder),
            "OBS_BACKEND_URL": f"chaos={self.backend.url}",
            "OBS_POLL_SECONDS": "1",
            "OBS_NOPRUNE": "no",
            "OBS_PAST": "notify",
            "OBS_UNKNOWN_PROJECTS": "public",
            "IMPORT_GRACE_SECONDS": "2",
            "BUS_BACKENDS": f"file=file://{self.bus_file}",
            "WEB_PORT": str(self.port),
            "WEB_PROCESSES": "2",
            "LOG_FORMAT": "json",
            "LOG_LEVEL": "WARNING",
        }

    # --- building and clearing away ---

    def start_all(self) -> None:
        """Start everything; return when it serves."""
        self.has_disk = self._mount()
        self.engines.start()
        self.manage("migrate", "-v0")
        with self.engines.connect() as database:
            database.execute(AUDIT)
        self.backend_serves.start()
        self.start(
            "web",
            "-m",
            "gunicorn",
            "--config",
            "config/servers/gunicorn.py",
            "tailrace.config.servers.wsgi",
        )
        for number in (1, 2, 3):
            self.start_worker(f"worker{number}")
        if self.side == TAILRACE:
            for number in (1, 2):
                self.start_beat(f"beat{number}")
        threading.Thread(target=self._keep, daemon=True).start()
        wait_until(self._serves, START_SECONDS, f"the deployment serves; see {self.folder}")

    def tear_down(self) -> None:
        """Stop everything, remove the engines; the logs stay."""
        self.closing.set()
        with self.lock:
            for process in self.processes.values():
                _signal(process.running, signal.SIGCONT)
                _signal(process.running, signal.SIGTERM)
            for process in self.processes.values():
                with suppress(subprocess.TimeoutExpired):
                    process.running.wait(15)
                _signal(process.running, signal.SIGKILL)
                process.running.wait()
        if self.backend_serves.is_alive():
            self.backend.shutdown()
        self.backend.server_close()
        self.fill_disk(False)
        if os.path.ismount(self.disk):
            subprocess.run(["umount", str(self.disk)], check=False)
        self.engines.tear_down()

    def manage(self, *words: str, check: bool = True, **more: str) -> str:
        """Run a command of manage.py to its end; return what it printed."""
        done = forks.run(
            ["manage.py", *words],
            cwd=ROOT, env=self.environment | more, check=check, stdout=subprocess.PIPE, text=True,
            stderr=None if check else subprocess.DEVNULL,
        )  # fmt: skip
        return done.stdout

    def web_answers(self) -> bool:
        """Whether the web server answers, with its database."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/chaos/ready", timeout=5) as answer:
                return answer.status == 200
        except (URLError, OSError):
            return False

    def _serves(self) -> bool:
        if not self.web_answers():
            return False
        if self.side != TAILRACE:
            logs = [self.folder / f"worker{number}.log" for number in (1, 2, 3)]
            return all("ready." in log.read_text() for log in logs)
        return (
            self.number("SELECT count(*) FROM tailrace_jobs_pulse WHERE name LIKE 'worker:%%'") == 3
        )

    def number(self, query: str, *values: object) -> int:
        """Return the number that a query yields."""
        with self.engines.connect() as database:
            row = database.execute(query, values).fetchone()
        return int(row[0] or 0) if row else 0

    # --- processes ---

    def start(self, name: str, *words: str, command: str = sys.executable, **more: str) -> None:
        """Start a process, to be started anew whenever it ends."""
        environment = self.environment | more
        with self.lock:
            running = self._open(name, [command, *words], environment)
            self.processes[name] = Process([command, *words], environment, running)

    def start_worker(
        self, name: str, *before: str, options: Sequence[str] = (), **more: str
    ) -> None:
        """A worker with two children; `before`: words in front of the command."""
        app = "tailrace.config" if self.side == TAILRACE else "tests.chaos.plain_celery"
        words = [
            *("-m", "celery", "-A", app, "worker", "--pool", "prefork", "--concurrency", "2"),
            *("--hostname", f"{name}@chaos", *options),
        ]
        if self.side != TAILRACE:
            names = "one together fair ordered slow flaky".split()
            words += ["-Q", ",".join(f"plain.{name}" for name in names), "-l", "INFO"]
        if before:
            self.start(name, *before[1:], sys.executable, *words, command=before[0], **more)
        else:
            self.start(name, *words, **more)

    def start_beat(self, name: str, **more: str) -> None:
        """A beat; two at once are fine."""
        self.start(name, "-m", "celery", "-A", "tailrace.config", "beat", "--pidfile=", **more)

    def named(self, kind: str) -> list[str]:
        """The names of the processes of a kind that are meant to run."""
        return [n for n, p in self.processes.items() if n.startswith(kind) and not p.rests]

    def kill(self, name: str) -> None:
        """Kill -9 a process with its children; it is started anew."""
        with self.lock:
            process = self.processes[name]
            process.expected = True
            _signal(process.running, signal.SIGKILL)
        self.faults.append(f"kill -9 {name}")

    def children(self, name: str) -> list[int]:
        """The process ids of a worker's children."""
        try:
            return [p.pid for p in psutil.Process(self.processes[name].running.pid).children()]
        except psutil.NoSuchProcess:
            return []

    def kill_child(self, name: str) -> None:
        """Kill -9 one child of a worker."""
        if children := self.children(name):
            with suppress(ProcessLookupError):
                os.kill(self.random.choice(children), signal.SIGKILL)
            self.faults.append(f"kill -9 a child of {name}")

    def halt(self, name: str) -> None:
        """End a process kindly and leave it so."""
        with self.lock:
            process = self.processes[name]
            process.rests = True
            _signal(process.running, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.running.wait(30)
        _signal(process.running, signal.SIGKILL)
        process.running.wait()

    def restart(self, name: str, *, group: bool) -> None:
        """Ask a worker to end, by a signal to its main process or to all its processes; it is
        started anew when it has ended."""
        with self.lock:
            process = self.processes[name]
            process.expected = True
            if group:
                _signal(process.running, signal.SIGTERM)
            elif process.running.poll() is None:
                process.running.send_signal(signal.SIGTERM)
        self.faults.append(f"SIGTERM {name}{' and its children' if group else ''}")

    def signal_all(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a process and all its children."""
        _signal(self.processes[name].running, number)

    def _open(self, name: str, command: list[str], environment: dict) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            options: dict[str, Any] = {
                "cwd": ROOT, "env": environment, "stdin": subprocess.DEVNULL,
                "stdout": log, "stderr": subprocess.STDOUT, "start_new_session": True,
            }  # fmt: skip
            if command[0] == sys.executable:
                return forks.Fork(command[1:], **options)
            return subprocess.Popen(command, **options)

    def _keep(self) -> None:
        """Start anew what has ended, as systemd or Kubernetes does."""
        while not self.closing.wait(0.25):
            with self.lock:
                for name, process in self.processes.items():
                    if self.closing.is_set() or process.rests or process.running.poll() is None:
                        continue
                    _signal(process.running, signal.SIGKILL)  # what it leaves behind
                    if not process.expected:
                        self.crashed.append(f"{name} ({process.running.returncode})")
                    process.expected = False
                    process.running = self._open(name, process.command, process.environment)

    # --- the disk of the bus file ---

    def _mount(self) -> bool:
        """Put the bus file on its own small disk; False without the right to mount one."""
        options = f"size={DISK_BYTES},mode=0755"
        command = ["mount", "-t", "tmpfs", "-o", options, "chaos", str(self.disk)]
        return subprocess.run(command, capture_output=True).returncode == 0

    def fill_disk(self, full: bool) -> None:
        """Fill it to the last byte, or make room."""
        filler = self.disk / "filler"
        if not full:
            filler.unlink(missing_ok=True)
            return
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * 512)

    def end_long_calls(self, end: bool) -> None:
        """Let the calls of `chaos.long` return, or keep them from it."""
        if end:
            self.long_calls_end.touch()
        else:
            self.long_calls_end.unlink(missing_ok=True)

    def fsck(self) -> dict[str, list]:
        """What `manage.py fsck` finds, not left to the sweeper: ids by kind; an error counts."""
        kinds = json.loads(self.manage("fsck", "--json", check=False))["kinds"]
        result = {
            kind["kind"]: kind["ids"] + [kind["error"]] * bool(kind["error"])
            for kind in kinds
            if not kind["clean"]
        }
        return {kind: ids for kind, ids in result.items() if ids}


@contextmanager
def deployment(folder: Path, side: str, seed: int) -> Iterator[Deployment]:
    """A deployment that serves, cleared away at the end."""
    built = Deployment(folder, side, seed)
    try:
        built.start_all()
        yield built
    finally:
        built.tear_down()


AUDIT = """
CREATE TABLE chaos_event (id text PRIMARY KEY, number int);
CREATE TABLE chaos_move (
  id bigserial PRIMARY KEY, job bigint, was text, became text, claim_no int, worker text);
CREATE FUNCTION chaos_write_down() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos_move (job, was, became, claim_no, worker)
  VALUES (NEW.id, OLD.state, NEW.state, NEW.claim_no, OLD.worker);
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_write_down AFTER UPDATE OF state ON tailrace_jobs_job
FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION chaos_write_down();
INSERT INTO tailrace_jobs_schedule (name, handler, routing_key, every_seconds, cron, time_zone,
                           owner, catch_up, enabled)
SELECT 'chaos ' || policy, 'chaos.slot', policy, 2, '', 'UTC', 'chaos', policy, true
FROM unnest('{all,latest,skip}'::text[]) AS policy;
"""


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
