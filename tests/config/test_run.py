"""`manage.py run`: the whole platform, with its own ports and folder."""

import os
import re
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

from tests.config.copied_project import copy_project, copy_tests
from tests.kit import PATIENCE, wait_until
from tests.servers.platform import ROOT, Platform, free_ports, living, running_platform

pytestmark = pytest.mark.once

START_SECONDS = EVENT_SECONDS = STOP_SECONDS = PATIENCE


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """The platform of a fresh clone."""
    copy_project(tmp_path, compiled=True)
    copy_tests(tmp_path, compiled=True)
    with running_platform(tmp_path) as platform:
        yield platform


@pytest.mark.slow
def test_make_run_works_and_ctrl_c_ends_everything() -> None:
    with running_platform() as platform:
        check_start(platform)
        check_flower(platform)
        check_end(platform)


@pytest.mark.slow
@pytest.mark.long
def test_everything_ends_after_make_run_was_killed() -> None:
    with running_platform() as platform:
        platform.until(
            lambda: platform.health().get("workers") == 1, EVENT_SECONDS, "no worker was seen"
        )
        members = platform.members()
        platform.process.kill()
        platform.process.wait()
        wait_until(lambda: not living(members), STOP_SECONDS)


@pytest.mark.slow
@pytest.mark.long
def test_make_run_of_a_fresh_clone_shows_the_samples_and_takes_up_new_code(
    platform: Platform,
) -> None:
    printed = check_start(platform)
    check_flower(platform)
    check_inspect(platform)
    check_samples(platform, printed.split("Sign in       admin, password ")[1].split()[0])
    add_a_side_effect(platform)
    check_end(platform)


def check_start(platform: Platform) -> str:
    """Everything starts and works; return what was printed."""
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
    assert "Tailrace runs." in printed
    assert "[info" not in printed
    assert "gunicorn" in (platform.var / "output.log").read_text()
    for word in (
        "Overview ",
        "Admin  ",
        "Flower ",
        "Mails ",
        "Feed  ",
        "Bus  ",
        "Timeline ",
        "Protection ",
        "Records ",
        "Subscriptions ",
        "API  ",
        "Sign in ",
        "Sample users ",
    ):
        assert printed.count(f"\n{word}") == 1
    return printed


def check_end(platform: Platform) -> None:
    """Ctrl-C ends every process."""
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
    for title in ("Your data was found in a leak", "The public record names a new owner"):
        assert title in alerts
    platform.until(
        lambda: "Awaiting confirmation since" in page("/protection/removals"),
        EVENT_SECONDS,
        "the sample removal was not submitted and confirmed",
    )
    walk_to_a_report(platform)


def walk_to_a_report(platform: Platform) -> None:
    """The commands of docs/how-to/platform.md end with a PDF."""
    page = ROOT / "docs" / "how-to" / "platform.md"
    section = page.read_text().split("## From a plan to a report")[1]
    commands = section.split("```sh\n")[1].split("```")[0].splitlines()
    assert len(commands) == 5
    script = "\n".join(commands).replace(":8000/", f":{platform.web}/")
    script = script.replace("report.pdf", str(platform.var / "report.pdf"))
    printed = shell(platform, script)
    assert '"plan":"premium"' in printed.replace(" ", "")
    assert (platform.var / "report.pdf").read_bytes().startswith(b"%PDF-")


def add_a_side_effect(platform: Platform) -> None:
    """docs/how-to/new-handler.md, followed to the letter beside `make run`."""
    section = (ROOT / "docs" / "how-to" / "new-handler.md").read_text()
    new_files, test, publish = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    shell(platform, new_files)
    for name, code in re.findall(
        r"`(\w+/shop/\w+\.py)`:\n\n```python\n(.*?)```", section, re.DOTALL
    ):
        assert (platform.root / name).is_file()
        (platform.root / name).write_text(code)
    assert "1 passed" in shell(platform, test)
    shell(platform, publish)

    def receipt() -> bool:
        return any("Order 7" in mail.read_text() for mail in (platform.var / "mail").glob("*.eml"))

    platform.until(receipt, EVENT_SECONDS, "no receipt was mailed")
    assert "installed_apps.py" in printed_by_reload(platform)

    handlers = platform.root / "domains/shop/handlers.py"
    source = handlers.read_text()
    handlers.write_text(source + "def handle(:\n")
    error = f"domains/shop/handlers.py:{len(source.splitlines()) + 1}: invalid syntax"
    platform.until(
        lambda: error in printed_by_reload(platform),
        START_SECONDS,
        "the syntax error was not printed",
    )
    platform.until(
        lambda: platform.health().get("database") == "ok", START_SECONDS, "no web server"
    )


def printed_by_reload(platform: Platform) -> str:
    lines = platform.log.read_text().splitlines()
    return "\n".join(line.partition("| ")[2] for line in lines if " reload " in line)


def _newcomer(platform: Platform) -> dict[str, str]:
    """Return the variables of a pytest of its own, which is no process of this one's."""
    variables = platform.environment().items()
    return {name: value for name, value in variables if not name.startswith("PYTEST_XDIST")}


def shell(platform: Platform, commands: str) -> str:
    """Run lines of a page in the clone; return what they printed."""
    done = subprocess.run(
        [
            "bash",
            "-c",
            "set -euo pipefail\n" + commands.replace(".venv/bin/python", sys.executable),
        ],
        cwd=platform.root,
        env=_newcomer(platform),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_inspect(platform: Platform) -> None:
    """`celery inspect` sees the worker, and the tasks by the handlers' names.

    The worker is named, so that its answer is the last one: else both wait until the time is over.
    """
    node = f"worker1@{socket.gethostname()}"
    for question, answer in (("ping", "pong"), ("registered", "builds.project_log")):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "celery",
                "-A",
                "tailrace.config",
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
