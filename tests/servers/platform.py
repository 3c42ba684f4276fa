"""The whole platform as `manage.py run` starts it, with its own ports and folder."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil

from tailrace.config.devserver import embedded

ROOT = Path(__file__).parents[2]
HEALTH_TOKEN = "a-token-of-monitoring"


def free_ports(count: int) -> list[int]:
    """Return ports that are free."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def living(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return those that have not ended. A process whose parent was killed may stay as a zombie."""
    alive = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


class Platform:
    """A running platform."""

    def __init__(self, var: Path, root: Path = ROOT, **variables: str) -> None:
        self.var, self.root, self.variables = var, root, variables
        self.web, self.flower, self.backend, self.sources, self.repository = free_ports(5)
        self.log = var / "run.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "run"],
                cwd=root,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def environment(self) -> dict[str, str]:
        """A newcomer's: nothing set but what keeps us apart from others, and `variables`."""
        variables = {
            key: value
            for key, value in os.environ.items()
            if key not in ("DATABASE_URL", "BROKER_URL", "DJANGO_SETTINGS_MODULE")
        }
        return variables | {
            "TAILRACE_VAR": str(self.var),
            "WEB_PORT": str(self.web),
            "FLOWER_PORT": str(self.flower),
            "SAMPLE_BACKEND_PORT": str(self.backend),
            "PROTECTION_SAMPLE_PORT": str(self.sources),
            "RECORDS_SAMPLE_PORT": str(self.repository),
            "HEALTH_TOKEN": HEALTH_TOKEN,
            **self.variables,
        }

    def health_request(self) -> Request:
        headers = {"Authorization": f"Bearer {HEALTH_TOKEN}"}
        return Request(f"http://127.0.0.1:{self.web}/healthz", headers=headers)

    def health(self) -> dict[str, Any]:
        """Return the answer of /healthz; {} without an answer."""
        try:
            with urlopen(self.health_request(), timeout=300) as answer:
                health: dict[str, Any] = json.load(answer)
                return health
        except OSError:
            return {}

    def flower_status(self, path: str, auth: str = "") -> int:
        """The status that Flower answers with."""
        headers = {"Authorization": "Basic " + base64.b64encode(auth.encode()).decode()}
        request = Request(f"http://127.0.0.1:{self.flower}{path}", headers=headers if auth else {})
        try:
            with urlopen(request, timeout=300) as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code

    def members(self) -> list[psutil.Process]:
        """Every process below, and the engines."""
        pids = [self.process.pid] if self.process.poll() is None else []
        below = [child for pid in pids for child in psutil.Process(pid).children(recursive=True)]
        home = str(embedded.Folders.of(self.var).home)
        engines = [
            process
            for process in psutil.process_iter(["cmdline"])
            if any(home in word for word in process.info["cmdline"] or [])
        ]
        return list({*below, *engines})

    def until(self, true: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait with a bound, and show the log if it was in vain."""
        deadline = time.monotonic() + seconds
        while not true():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{what}; the log ends:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.2)


@contextmanager
def running_platform(root: Path = ROOT, **variables: str) -> Iterator[Platform]:
    """A platform in its own folder, removed at the end. `root`: of the code."""
    var = Path(tempfile.mkdtemp(prefix="tr-run-"))
    var.chmod(0o755)
    platform = Platform(var, root, **variables)
    try:
        yield platform
    finally:
        left = platform.members()
        if platform.process.poll() is None:
            platform.process.kill()
            platform.process.wait()
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        embedded.stop(var)
        shutil.rmtree(var, ignore_errors=True)
