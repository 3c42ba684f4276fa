"""The engines, databases and processes of one benchmark run, removed when it ends."""

import os
import platform
import re
import signal
import socket
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import psycopg
import redis
from environ import Env

ROOT = Path(__file__).parent.parent
LOGS = ROOT / "var" / "bench" / "logs"
REDIS_DATABASE = 15
OURS = "tailrace:bench"
"""A key that says that what is in a database of Redis may be deleted."""
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
PACKAGES = (
    "django celery redis psycopg procrastinate django-tasks django-tasks-db dramatiq kombu "
    "gevent taskiq taskiq-redis"
).split()


class Refused(SystemExit):
    """What is to be measured on would give wrong figures, or would lose what is in it."""


def dsn(url: str) -> str:
    """A libpq connection string for a DATABASE_URL."""
    parsed = Env.db_url_config(url)
    parts = {
        "dbname": parsed["NAME"],
        "user": parsed["USER"],
        "password": parsed["PASSWORD"],
        "host": parsed["HOST"] or parsed.get("OPTIONS", {}).get("host"),
        "port": parsed["PORT"] or parsed.get("OPTIONS", {}).get("port"),
    }
    return psycopg.conninfo.make_conninfo(**{key: value for key, value in parts.items() if value})


def redis_url(url: str) -> str:
    """A URL for redis-py of a BROKER_URL, which may be Celery's of a Unix socket."""
    parts = urlsplit(url)
    if parts.scheme != "redis+socket":
        return url
    number = dict(parse_qsl(parts.query)).get("virtual_host", "0")
    return f"unix://{parts.path}?db={number}"


class Servers:
    """DATABASE_URL and BROKER_URL, else this machine's services, else embedded engines."""

    def __init__(self) -> None:
        self.cores = os.cpu_count() or 1
        self._databases: list[str] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._database_url, self._broker_url = _engines()
        with self._server() as server:
            for name in DURABLE:
                row = server.execute(f"SHOW {name}").fetchone()
                if row != ("on",):
                    raise Refused(f"bench: {name} is {row and row[0]}; set it to on")
        LOGS.mkdir(parents=True, exist_ok=True)

    def _server(self) -> psycopg.Connection[Any]:
        return psycopg.connect(dsn(self._database_url), autocommit=True)

    def database(self, name: str, copy_of: str = "template1") -> str:
        """Make an empty database, or a copy of another one that was made; return its URL."""
        name = f"tailrace_bench_{name}"
        template = copy_of if copy_of == "template1" else f"tailrace_bench_{copy_of}"
        with self._server() as server:
            server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
            server.execute("CHECKPOINT")
        self._databases.append(name)
        return urlunsplit(urlsplit(self._database_url)._replace(path=f"/{name}"))

    def drop(self, keep: int = 0) -> None:
        """Drop all databases that were made, but for the first `keep`."""
        with self._server() as server:
            while len(self._databases) > keep:
                name = self._databases.pop()
                server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _redis(self) -> redis.Redis:
        return redis.Redis.from_url(redis_url(self._broker_url))

    def broker(self) -> str:
        """The URL of the broker's key space, emptied; one that holds others' keys is refused."""
        client = self._redis()
        if client.dbsize() and not client.exists(OURS):
            where = urlsplit(self._broker_url).path
            raise Refused(f"bench: Redis database {where} is not empty; name one in BROKER_URL")
        client.flushdb()
        client.set(OURS, 1)
        return self._broker_url

    def environment(self, database: str, broker: str, **more: str) -> dict[str, str]:
        """For a process of ours on these engines."""
        return os.environ | {
            "SECRET_KEY": OURS * 5,
            "DATABASE_URL": database,
            "BROKER_URL": broker,
            "DJANGO_SETTINGS_MODULE": "bench.settings",
            "TAILRACE_VAR": str(ROOT / "var" / "bench"),
            "LOG_LEVEL": "WARNING",
            "BENCH_PROCESSES": str(self.cores),
            **more,
        }

    def run(self, env: dict[str, str], *command: str, root: Path = ROOT) -> str:
        """Run a Python command of a checkout to its end; return what it printed."""
        done = subprocess.run(
            [sys.executable, *command], cwd=root, env=env, stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            raise SystemExit(f"bench: {' '.join(command)} ended with status {done.returncode}")
        return done.stdout

    def start(
        self, name: str, env: dict[str, str], *command: str, root: Path = ROOT
    ) -> subprocess.Popen[bytes]:
        """Start a Python command of a checkout in a new session, with its output in a log."""
        with (LOGS / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *command],
                cwd=root, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        return process

    def worker(self, env: dict[str, str], name: str = "worker") -> subprocess.Popen[bytes]:
        """Our worker as it ships, with as many processes as cores."""
        return self.start(
            name, env, "-m", "celery", "-A", "tailrace.config", "worker", "--loglevel", "WARNING",
            "--concurrency", str(self.cores),
        )  # fmt: skip

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End it and all below it."""
        for number, seconds in ((signal.SIGTERM, 15), (signal.SIGKILL, 15)):
            try:
                os.killpg(process.pid, number)
                process.wait(seconds)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        if process in self._processes:
            self._processes.remove(process)

    def close(self) -> None:
        """Stop and drop everything."""
        for process in list(self._processes):
            self.stop(process)
        self.drop()

    def where(self) -> dict[str, Any]:
        """The machine and the versions, for the report."""
        with self._server() as server:
            settings = {
                name: server.execute(f"SHOW {name}").fetchone()[0]  # type: ignore[index]
                for name in ("server_version", "shared_buffers", *DURABLE)
            }
        broker: Any = self._redis().info("server")
        return {
            "cores": self.cores,
            "cpu": _first(r"model name\s*: (.*)", Path("/proc/cpuinfo")),
            "memory": _first(r"MemTotal:\s*(.*)", Path("/proc/meminfo")),
            "system": platform.platform(),
            "python": platform.python_version(),
            "postgresql": settings,
            "broker": broker.get("valkey_version") or broker["redis_version"],
            "packages": {name: _version(name) for name in PACKAGES},
            "commit": subprocess.run(
                ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
            ).stdout.strip(),
        }


def _engines() -> tuple[str, str]:
    database, broker = os.environ.get("DATABASE_URL", ""), os.environ.get("BROKER_URL", "")
    if not database and _answers(5432) and _lets_in("postgres"):
        database = "postgres://postgres@127.0.0.1:5432/postgres"
    if not broker and _answers(6379):
        broker = f"redis://127.0.0.1:6379/{REDIS_DATABASE}"
    if database and broker:
        return database, broker
    from tailrace.config.devserver import embedded
    from tests.addresses import address

    var = ROOT / "var" / "bench"
    embedded.ensure(var, embedded.Selection(postgres=not database, valkey=not broker))
    return database or address(embedded.database(var)), broker or embedded.broker_url(var)


def _lets_in(user: str) -> bool:
    try:
        psycopg.connect(host="127.0.0.1", user=user, dbname="postgres", connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _first(pattern: str, path: Path) -> str:
    match = re.search(pattern, path.read_text()) if path.exists() else None
    return match.group(1) if match else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
