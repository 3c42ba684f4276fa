"""A PostgreSQL and a Valkey for one run, to be cut, stopped and killed."""

import shutil
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import redis

from tailrace.config.devserver import embedded
from tailrace.config.devserver.engine import Account
from tailrace.config.devserver.postgres import Postgres
from tailrace.config.devserver.valkey import Valkey

DATABASE = "chaos"
OTHERS = "backend_type = 'client backend' AND application_name <> 'chaos'"
"""SQL: sessions of the deployment."""


class Engines:
    """Both servers, their files in a folder that `tear_down` removes."""

    def __init__(self, folder: Path) -> None:
        paths = embedded.Folders.of(folder / "engines")
        self.home = paths.home
        self.sockets = paths.sockets
        account = Account.unprivileged()
        self.home.mkdir(parents=True, exist_ok=True, mode=0o755)
        self.postgres = Postgres(self.home, self.sockets, account, embedded.PORT, DATABASE)
        self.valkey = Valkey(self.home, self.sockets, account)
        where = urlencode({"host": str(self.sockets), "port": embedded.PORT})
        self.database_url = f"postgres://postgres@/{DATABASE}?{where}"
        self.broker_url = f"redis+socket://{self.valkey.socket}?virtual_host=0"

    def start(self) -> None:
        """Return when both answer."""
        self.postgres.start()
        self.valkey.start()

    def connect(self) -> psycopg.Connection[tuple]:
        """A connection of the harness's own, in autocommit."""
        return psycopg.connect(
            host=str(self.sockets), port=embedded.PORT, user="postgres", dbname=DATABASE,
            autocommit=True, application_name="chaos",
        )  # fmt: skip

    def cut(self) -> None:
        """Let PostgreSQL end every session except our own."""
        with self.connect() as server:
            self.end_others(server)

    def end_others(self, server: psycopg.Connection[tuple]) -> None:
        """Let PostgreSQL end every session except our own, by one that is open."""
        server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS}")

    def count_others(self, server: psycopg.Connection[tuple]) -> int:
        """How many sessions are not ours."""
        row = server.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {OTHERS}").fetchone()
        return row[0] if row else 0

    def all_left(self) -> list[psycopg.Connection[tuple]]:
        """Open connections until PostgreSQL refuses one."""
        opened = []
        with suppress(psycopg.OperationalError):
            while True:
                opened.append(self.connect())
        return opened

    def flush(self) -> None:
        """Let Valkey forget all messages."""
        redis.Redis(unix_socket_path=str(self.valkey.socket)).flushall()

    def tear_down(self) -> None:
        """Stop both and remove their files."""
        for engine in (self.valkey, self.postgres):
            engine.stop()
        for folder in {self.home, self.sockets}:
            shutil.rmtree(folder, ignore_errors=True)
