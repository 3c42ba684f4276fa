"""The house under test: a database and a key space of its own, and real processes."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from environ import Env
from kombu import Connection

from domains.builds.sample.server import Backend

ROOT = Path(__file__).parents[2]


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until the condition holds; fail with `what` when it does not within `seconds`."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)


def dsn(url: str) -> str:
    """Return a libpq connection string for a DATABASE_URL."""
    found = Env.db_url_config(url)
    parts = {
        "dbname": found["NAME"],
        "user": found["USER"],
        "password": found["PASSWORD"],
        "host": found["HOST"] or found.get("OPTIONS", {}).get("host"),
        "port": found["PORT"] or found.get("OPTIONS", {}).get("port"),
    }
    return psycopg.conninfo.make_conninfo(**{key: value for key, value in parts.items() if value})


class House:
    """Workers, beats and a backend on a database that is made for them and dropped after."""

    def __init__(self, folder: Path, lease: float, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills: list[str] = []
        server = urlsplit(os.environ["DATABASE_URL"])
        self.name = f"chaos_{os.getpid()}"
        self.database_url = urlunsplit(server._replace(path=f"/{self.name}"))
        self.broker_url = os.environ["BROKER_URL"]
        self.backend = Backend()
        self.bus_file = folder / "bus.ndjson"
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "DATABASE_URL": self.database_url,
            "BROKER_URL": self.broker_url,
            "TAILRACE_VAR": str(folder),
            "OBS_BACKEND_URL": f"chaos={self.backend.url}",
            "OBS_POLL_SECONDS": "1",
            "BUS_BACKENDS": f"file=file://{self.bus_file}",
            "CHAOS_LEASE_SECONDS": str(lease),
            "LOG_FORMAT": "json",
        }

    def build(self) -> None:
        """Make the database, with a trigger that writes down every move of every job."""
        with psycopg.connect(dsn(os.environ["DATABASE_URL"]), autocommit=True) as server:
            server.execute(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')
            server.execute(f'CREATE DATABASE "{self.name}"')
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "-v0"],
            cwd=ROOT,
            env=self.environment,
            check=True,
        )
        with self.connect() as database:
            database.execute(AUDIT)
        self.flush_broker()

    def connect(self) -> psycopg.Connection[tuple]:
        return psycopg.connect(dsn(self.database_url), autocommit=True)

    def start(self, name: str, *command: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        self.processes[name] = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        log.close()

    def start_backend(self) -> None:
        threading.Thread(target=self.backend.serve_forever, args=[0.1], daemon=True).start()

    def start_worker(self, name: str) -> None:
        self.start(
            name, "-m", "celery", "-A", "config", "worker", "--pool", "prefork",
            "--concurrency", "2", "--hostname", f"{name}@chaos", "--loglevel", "WARNING",
        )  # fmt: skip

    def start_beat(self, name: str) -> None:
        self.start(name, "-m", "celery", "-A", "config", "beat", "--pidfile=", "-l", "WARNING")

    def kill_a_worker(self) -> None:
        """Kill -9 a worker with its children, or one child alone, chosen at random."""
        name = self.random.choice([name for name in self.processes if name.startswith("worker")])
        process = self.processes[name]
        children = _children(process.pid)
        if children and self.random.random() < 0.5:
            os.kill(self.random.choice(children), signal.SIGKILL)
            self.kills.append(f"a child of {name}")
            return
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.kills.append(name)
        self.start_worker(name)

    def flush_broker(self) -> None:
        """Forget all messages: FLUSHDB on Redis, the queues' contents on RabbitMQ."""
        with Connection(self.broker_url) as broker:
            channel = broker.default_channel
            if hasattr(channel, "client"):
                channel.client.flushdb()
                return
            for queue in self._queues():
                try:
                    broker.default_channel.queue_purge(queue)
                except broker.channel_errors:  # not declared yet
                    continue

    def _queues(self) -> list[str]:
        with self.connect() as database:
            names = [row[0] for row in database.execute("SELECT name FROM jobs_queue")]
        return [*names, "jobs.tick", "jobs.sweep", "jobs.prune"]

    def stop(self) -> None:
        self.backend.shutdown()
        self.backend.server_close()
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def raze(self) -> None:
        with psycopg.connect(dsn(os.environ["DATABASE_URL"]), autocommit=True) as server:
            server.execute(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')


@contextmanager
def house(folder: Path, lease: float, seed: int) -> Iterator[House]:
    built = House(folder, lease, seed)
    built.build()
    try:
        yield built
    finally:
        built.stop()
        built.raze()


AUDIT = """
CREATE TABLE chaos_move (
  id bigserial, job bigint, was text, became text, claim_no int, worker text);
CREATE FUNCTION chaos_write_down() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos_move (job, was, became, claim_no, worker)
  VALUES (NEW.id, OLD.state, NEW.state, NEW.claim_no, NEW.worker);
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_write_down AFTER UPDATE OF state ON jobs_job
FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION chaos_write_down();
"""


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
        text = found.stdout
    return [int(child) for child in text.split()]
