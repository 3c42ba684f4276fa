"""A real PgBouncer in transaction mode in front of the tests' PostgreSQL; skips without one."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailrace.config.devserver.engine import Account
from tests.kit import PATIENCE, wait_until

SETTINGS = """
[databases]
* = host={host} port={port} user={user} {password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
admin_users = {admin}
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 500
query_wait_timeout = 60
logfile = {folder}/pgbouncer.log
pidfile =
"""


class PgBouncer:
    """The pooler; `size`: server connections that all clients of a database share."""

    def __init__(self, folder: Path, database: dict[str, Any], size: int) -> None:
        self.folder, self.database, self.size = folder, database, size
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = int(probe.getsockname()[1])
        self.process: subprocess.Popen[bytes] | None = None
        self.server_login = (self.user, database["PASSWORD"])
        options = database.get("OPTIONS", {})
        self.host = database["HOST"] or options.get("host") or ""
        self.server_port = database["PORT"] or options.get("port") or 5432
        if not database["PASSWORD"] and self.host.startswith("/"):
            self.server_login = self._login_by_password()

    @property
    def url(self) -> str:
        """The DATABASE_URL of the test's database behind the pooler."""
        return f"postgres://{self.user}@127.0.0.1:{self.port}/{self.database['NAME']}"

    @property
    def user(self) -> str:
        return self.database["USER"] or "postgres"

    def start(self, program: str) -> None:
        """Return when it answers."""
        text = SETTINGS.format(
            host=self.host,
            port=self.server_port,
            admin=self.user,
            user=self.server_login[0],
            password=f"password={secret}" if (secret := self.server_login[1]) else "",
            listen_port=self.port,
            size=self.size,
            folder=self.folder,
        )
        (self.folder / "pgbouncer.ini").write_text(text)
        account = Account.unprivileged()  # it refuses root
        if account.uid is not None:
            os.chown(self.folder, account.uid, account.gid or -1)
        self.folder.chmod(0o755)
        self.process = subprocess.Popen(
            [program, "-q", str(self.folder / "pgbouncer.ini")],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, **account.options,
        )  # fmt: skip
        wait_until(self._answers, 20, f"PgBouncer answers; {self.folder}/pgbouncer.log")

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait(PATIENCE)

    def connect(self, database: str = "") -> psycopg.Connection[tuple]:
        """A client of the pooler, in autocommit and without prepared statements."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=self.user, autocommit=True,
            dbname=database or self.database["NAME"], prepare_threshold=None,
        )  # fmt: skip

    def show(self, what: str) -> list[dict[str, Any]]:
        """The rows of PgBouncer's own `SHOW …`."""
        with self.connect("pgbouncer") as admin, admin.cursor() as cursor:
            cursor.execute(f"SHOW {what}".encode())
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _login_by_password(self) -> tuple[str, str]:
        """Return a role and its password: the embedded PostgreSQL asks the kernel who its peer is,
        and the pooler runs as another user."""
        with psycopg.connect(
            host=self.host, port=self.server_port, user=self.user,
            dbname=self.database["NAME"], autocommit=True,
        ) as connection:  # fmt: skip
            connection.execute("DROP ROLE IF EXISTS pooled")
            connection.execute("CREATE ROLE pooled SUPERUSER LOGIN PASSWORD 'a-word-of-tests'")
        return "pooled", "a-word-of-tests"

    def _answers(self) -> bool:
        assert self.process
        assert self.process.poll() is None, (self.folder / "pgbouncer.log").read_text()[-2000:]
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def pgbouncer(database: dict[str, Any], size: int) -> Iterator[PgBouncer]:
    """A pooler in front of one of Django's databases."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if not program:
        pytest.skip("pgbouncer is not installed; scripts/install-system-packages does it")
    folder = Path(tempfile.mkdtemp(prefix="tailrace-pgbouncer-"))
    pooler = PgBouncer(folder, database, size)
    try:
        pooler.start(program)
        yield pooler
    finally:
        pooler.stop()
        shutil.rmtree(folder, ignore_errors=True)
