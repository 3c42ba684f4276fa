"""`manage.py run`: the whole platform, with its own ports and folder."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import psutil
import pytest

from tests.kit import PATIENCE
from tests.servers.platform import ROOT, Platform, free_ports, running_platform

pytestmark = pytest.mark.once

START_SECONDS = EVENT_SECONDS = STOP_SECONDS = PATIENCE


@pytest.fixture
def platform() -> Iterator[Platform]:
    with running_platform() as platform:
        yield platform


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
    for word in (
        "Overview ",
        "Admin  ",
        "Flower ",
        "Mails ",
        "Feed  ",
        "Bus  ",
        "Timeline ",
        "Protection ",
    ):
        assert printed.count(f"\n{word}") == 1

    check_flower(platform)
    check_inspect(platform)
    check_samples(platform, printed.split("Admin user: admin, password: ")[1].split()[0])

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


def check_samples(platform: Platform, password: str) -> None:
    """The admin's timeline has the sample walk, and the month is on its way there; scans find the
    sample leaks and the sample deed and raise alerts; a sample broker is asked for a removal."""
    browser = build_opener(HTTPCookieProcessor())
    address = f"http://127.0.0.1:{platform.web}"

    def page(path: str, **form: str) -> str:
        data = urlencode(form).encode() if form else None
        with browser.open(f"{address}{path}", data, timeout=300) as answer:
            return str(answer.read().decode())

    token = page("/accounts/login/").split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    page("/accounts/login/", username="admin", password=password, csrfmiddlewaretoken=token)
    assert "a-month-in-berlin.gpx" in page("/timeline/imports")
    platform.until(
        lambda: "days/2010-08-05" in page("/timeline/?month=2010-08"),
        EVENT_SECONDS,
        "the sample walk was not promoted",
    )
    assert "Watchlist" in page("/protection/")
    platform.until(
        lambda: "Sample Shop" in page("/protection/exposures"),
        EVENT_SECONDS,
        "the sample leaks were not found",
    )
    platform.until(
        lambda: "PDF, " in page("/protection/reports"),
        EVENT_SECONDS,
        "the sample report was not made",
    )
    alerts = page("/protection/")
    for title in ("Your data stands in a leak", "The public record names a new owner"):
        assert title in alerts
    platform.until(
        lambda: "Awaiting confirmation since" in page("/protection/removals"),
        EVENT_SECONDS,
        "the sample removal was not submitted and confirmed",
    )
    walk_to_a_report(platform)


def walk_to_a_report(platform: Platform) -> None:
    """The commands of the README end with a PDF."""
    section = (ROOT / "README.md").read_text().split("### From a plan to a report")[1]
    commands = section.split("```sh\n")[1].split("```")[0].splitlines()
    assert len(commands) == 5
    script = "\n".join(["set -euo pipefail", *commands]).replace(":8000/", f":{platform.web}/")
    script = script.replace(".venv/bin/python", sys.executable)
    script = script.replace("report.pdf", str(platform.var / "report.pdf"))
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env=platform.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"plan":"premium"' in done.stdout.replace(" ", "")
    assert (platform.var / "report.pdf").read_bytes().startswith(b"%PDF-")


def check_inspect(platform: Platform) -> None:
    """`celery inspect` sees the worker, and the tasks by the handlers' names.

    The worker is named, so that its answer is the last one: else both wait until the time is over.
    """
    node = f"celery@{socket.gethostname()}"
    for question, answer in (("ping", "pong"), ("registered", "builds.project_log")):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "celery",
                "-A",
                "config",
                "inspect",
                "-t",
                "60",
                "-d",
                node,
                question,
            ],
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
