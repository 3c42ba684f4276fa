"""docs/tutorial.md, followed to the letter in an empty folder."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.conftest import Host
from tests.kit import ROOT, empty_broker, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.once]

SERVERS = """
import os
DATABASES = {"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["DB_NAME"],
    "USER": os.environ["DB_USER"], "PASSWORD": os.environ["DB_PASSWORD"],
    "HOST": os.environ["DB_HOST"], "PORT": os.environ["DB_PORT"],
}}
CELERY_BROKER_URL = os.environ["BROKER"]
"""
"""Settings of the test servers, which replace the settings of the page."""
NOT_FOLLOWED = re.compile(
    r"python3 -m venv|\. |pip install|python servers.py|python manage.py (createsuper|runserver)"
)
"""The steps that are left out: the tests have an environment and servers already."""
VISIT = """
from django.contrib.auth.models import User
from django.test import Client
client = Client(headers={"host": "localhost"})
client.force_login(User.objects.create_superuser("ann", password="x"))
assert b"orders.send_receipt" in client.get("/tailrace/").content
assert client.get("/admin/tailrace_jobs/job/2/change/").status_code == 200
"""


def blocks() -> Iterator[tuple[str, str, str]]:
    """Yield the paragraph before each block of the page, its language and its text."""
    page = (ROOT / "docs/tutorial.md").read_text()
    yield from re.findall(r"([^\n]*)\n+```(\w+)\n(.*?)```", page, re.DOTALL)


def write(work: Path, before: str, text: str) -> None:
    """Do with the file what the paragraph says."""
    *_, name = re.findall(r"`((?:shop/|orders/|)\w+\.py)`", before)
    file = work / name
    if "t the end of" in before:
        file.write_text(file.read_text() + text)
    else:
        file.write_text(text)
    if name == "shop/settings.py":
        file.write_text(file.read_text() + SERVERS)


def follow(host: Host, line: str) -> str:
    """Do what a line of the page says; return what it printed."""
    if NOT_FOLLOWED.match(line):
        return ""
    match shlex.split(line):
        case ["celery", "-A", app, "worker", *words]:
            host.start_worker("-c", "1", *words, app=app)
            return ""
        case ["cat", name]:
            wait_until((host.work / name).exists, what=line)
            return (host.work / name).read_text()
        case [("python" | "django-admin") as program, *words]:
            if words[-2:] == ["explain", "2"]:
                wait_until(lambda: "retry" in follow(host, "python manage.py tailrace jobs show 2"))
            words = words if program == "python" else ["-m", "django", *words]
            done = host.run(*words)
        case [("mkdir" | "mv"), *_] as words:
            done = subprocess.run(words, cwd=host.work, capture_output=True, text=True)
        case _:
            pytest.fail(f"this test cannot follow {line!r}")
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def shop(empty_host: Host) -> Host:
    """The project after somebody has followed the page, with its worker."""
    empty_broker()
    printed: dict[str, str] = {}
    for before, language, text in blocks():
        if language == "python":
            write(empty_host.work, before, text)
            continue
        for line in text.splitlines():
            printed[line] = follow(empty_host, line)
    assert printed["python manage.py tailrace verdict"] == "Healthy\n"
    assert (
        "orders.send_receipt  waiting       1    1" in printed["python manage.py tailrace queues"]
    )
    assert printed["cat receipts/7.txt"] == "Receipt for ann@example.org\n"
    assert "No such file" in printed["python manage.py tailrace jobs show 2"]
    assert printed["cat receipts/8.txt"] == "Receipt for ann@example.org\n"
    assert "python manage.py test" in printed
    return empty_host


def test_a_newcomer_follows_the_page(shop: Host) -> None:
    done = shop.manage("shell", "--no-imports", "-c", VISIT)
    assert done.returncode == 0, done.stderr
    done = shop.manage("check")
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_it_can_be_left_again(shop: Host) -> None:
    """As docs/how-to/leave.md says."""
    shop.stop_workers()
    for app in ("tailrace_jobs", "tailrace_events"):
        assert f"python manage.py migrate {app} zero" in (ROOT / "docs/how-to/leave.md").read_text()
        done = shop.manage("migrate", app, "zero")
        assert done.returncode == 0, done.stderr
    settings = shop.work / "shop/settings.py"
    settings.write_text(settings.read_text().replace('"tailrace.events", "tailrace.jobs", ', ""))
    urls = shop.work / "shop/urls.py"
    urls.write_text(urls.read_text().rpartition("from django.urls import include")[0])
    for name in ("handlers", "event_types", "views", "tests"):
        (shop.work / f"orders/{name}.py").unlink()
    done = shop.manage("migrate", "--check")
    assert done.returncode == 0, done.stderr
    done = shop.manage(
        "shell", "--no-imports", "-c",
        "from django.db import connection as c; print(c.introspection.table_names())",
    )  # fmt: skip
    assert "auth_user" in done.stdout
    assert "tailrace" not in done.stdout
