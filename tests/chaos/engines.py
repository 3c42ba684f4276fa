"""A PostgreSQL and a Valkey of the run's own, to be cut, stopped and killed."""

import shutil
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import redis

from config import embedded
from config.engines import Account, Postgres, Valkey

DATABASE = "chaos"


class Engines:
    """Both servers, their files in a folder that `raze` removes."""

    def __init__(self, folder: Path) -> None:
        places = embedded.Places.of(folder / "engines")
        self.home = places.home
        self.sockets = places.sockets
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
            autocommit=True, application_name="judge",
        )  # fmt: skip

    def cut(self) -> None:
        """Let PostgreSQL end every session but the judge's."""
        with self.connect() as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND application_name <> 'judge'"
            )

    def flush(self) -> None:
        """Let Valkey forget all messages."""
        redis.Redis(unix_socket_path=str(self.valkey.socket)).flushall()

    def raze(self) -> None:
        """Stop both and remove their files."""
        for engine in (self.valkey, self.postgres):
            engine.stop()
        for folder in {self.home, self.sockets}:
            shutil.rmtree(folder, ignore_errors=True)
