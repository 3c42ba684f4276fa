"""`manage.py run`: the whole platform, with its own ports and folder."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

from config.devserver import embedded
from tests.kit import PATIENCE

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
START_SECONDS = EVENT_SECONDS = STOP_SECONDS = PATIENCE


def free_ports(count: int) -> list[int]:
    """Return ports that are free."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Platform:
    """A running platform."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.web, self.flower, self.backend = free_ports(3)
        self.log = var / "run.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "run"],
                cwd=ROOT,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def environment(self) -> dict[str, str]:
        """A newcomer's: nothing set but what keeps us apart from others."""
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
        }

    def health(self) -> dict:
        """Return the answer of /healthz; {} without an answer."""
        try:
            with urlopen(f"http://127.0.0.1:{self.web}/healthz", timeout=300) as answer:
                return json.load(answer)
        except OSError:
            return {}

    def flower_status(self, path: str, auth: str = "") -> int:
        """The status that Flower answers with."""
        headers = {"Authorization": "Basic " + base64.b64encode(auth.encode()).decode()}
        request = Request(f"http://127.0.0.1:{self.flower}{path}", headers=headers if auth else {})
        try:
            with urlopen(request, timeout=300) as answer:
                return answer.status
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

    def until(self, true, seconds: float, what: str) -> None:
        """Wait with a bound, and show the log if it was in vain."""
        deadline = time.monotonic() + seconds
        while not true():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{what}; the log ends:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.2)


@pytest.fixture
def platform() -> Iterator[Platform]:
    """A platform in its own folder, removed at the end."""
    var = Path(tempfile.mkdtemp(prefix="tr-run-"))
    var.chmod(0o755)
    platform = Platform(var)
    yield platform
    left = platform.members()
    if platform.process.poll() is None:
        platform.process.kill()
        platform.process.wait()
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    embedded.stop(var)
    shutil.rmtree(var, ignore_errors=True)


@pytest.mark.slow
def test_make_run_works_and_ctrl_c_ends_everything(
    platform: Platform,
) -> None:
    platform.until(
        lambda: platform.health().get("database") == "ok", START_SECONDS, "no web server"
    )
    platform.until(lambda: platform.health()["events"] > 0, EVENT_SECONDS, "no event arrived")
    platform.until(
        lambda: platform.health()["jobs"]["completed"] > 0, EVENT_SECONDS, "no job settled"
    )
    platform.until(lambda: platform.health()["workers"] == 1, EVENT_SECONDS, "no worker was seen")
    assert platform.health()["tick_age_s"] < 100
    printed = platform.log.read_text()
    assert printed.count("Admin user: admin, password: ") == 1
    for word in ("Overview ", "Admin  ", "Flower ", "Mails ", "Feed  ", "Bus  "):
        assert printed.count(f"\n{word}") == 1

    check_flower(platform)
    check_inspect(platform)

    members = platform.members()
    assert len(members) > 6
    os.killpg(platform.process.pid, signal.SIGINT)  # as a terminal does on Ctrl-C
    assert platform.process.wait(STOP_SECONDS) == 0, platform.log.read_text()[-4000:]
    gone, alive = psutil.wait_procs(members, timeout=300)
    assert alive == []
    assert len(gone) == len(members)


def check_flower(platform: Platform) -> None:
    """Flower wants its password, shows pages, and has neither API nor open metrics."""
    auth = (platform.var / "flower_auth").read_text()
    platform.until(
        lambda: platform.flower_status("/healthcheck") == 200, START_SECONDS, "no Flower"
    )
    assert platform.flower_status("/") == 401
    assert platform.flower_status("/", "admin:wrong") == 401
    assert platform.flower_status("/", auth) == 200
    for path in ("/api/workers", "/api/tasks", "/api/task/types", "/metrics"):
        assert platform.flower_status(path, auth) == 404


def check_inspect(platform: Platform) -> None:
    """`celery inspect` sees the worker, and the tasks by the handlers' names."""
    for question, answer in (("ping", "pong"), ("registered", "builds.project_log")):
        done = subprocess.run(
            [sys.executable, "-m", "celery", "-A", "config", "inspect", "-t", "5", question],
            cwd=ROOT,
            env=platform.environment(),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert answer in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_a_port_in_use_is_named_with_its_variable(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "manage.py", "run"],
            cwd=ROOT,
            env={**os.environ, "WEB_PORT": str(port), "FLOWER_PORT": str(free_ports(1)[0])},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 1
    assert f"WEB_PORT: port {port} is in use; set WEB_PORT to a free one" in done.stderr
    assert "Traceback" not in done.stderr
