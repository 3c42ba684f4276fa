"""docs/your-project.md, followed to the letter in a new project with a Celery application."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.conftest import Host
from tests.kit import ROOT, empty_broker, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.once]

CELERY = """
import os
from celery import Celery
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
"""
SETTINGS = """
import os
INSTALLED_APPS += ["orders"]
DATABASES = {"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["DB_NAME"],
    "USER": os.environ["DB_USER"], "PASSWORD": os.environ["DB_PASSWORD"],
    "HOST": os.environ["DB_HOST"], "PORT": os.environ["DB_PORT"],
}}
CELERY_BROKER_URL = os.environ["BROKER"]
_files = "django.core.mail.backends.filebased.EmailBackend"
if "MAILERS" in globals():  # from Django 6.1 on
    MAILERS["default"] = {"BACKEND": _files, "OPTIONS": {"file_path": BASE_DIR / "mails"}}
else:
    EMAIL_BACKEND, EMAIL_FILE_PATH = _files, BASE_DIR / "mails"
"""
PAY = """
from django.test import RequestFactory
from orders.views import pay
assert pay(RequestFactory().post("/", {"email": "ann@example.org"}), 7).content == b"paid"
"""


def blocks() -> Iterator[tuple[str, str, str]]:
    """Yield the paragraph before each block of the section, its language and its text."""
    page = (ROOT / "docs/your-project.md").read_text()
    section = page.split("## Five minutes\n")[1].split("\n## ")[0]
    yield from re.findall(r"([^\n]*)\n+```(\w+)\n(.*?)```", section, re.DOTALL)


def write(work: Path, before: str, text: str) -> None:
    """Do with the file what the paragraph says."""
    *_, name = re.findall(r"`((?:shop|orders)/\w+\.py)`", before)
    file = work / name
    if "t the end of" in before:
        file.write_text(file.read_text() + text)
    else:
        file.write_text(text)


@pytest.fixture(scope="module")
def shop(empty_host: Host) -> Host:
    """The project after somebody has followed the page, with its worker."""
    work = empty_host.work
    empty_broker()
    for words in (("startproject", "shop", "."), ("startapp", "orders")):
        done = empty_host.run("-m", "django", *words)
        assert done.returncode == 0, done.stderr
    (work / "shop/celery.py").write_text(CELERY)
    (work / "shop/__init__.py").write_text("from .celery import app as celery_app\n")
    (work / "shop/settings.py").write_text((work / "shop/settings.py").read_text() + SETTINGS)
    printed: dict[str, str] = {}
    for before, language, text in blocks():
        if language == "python":
            write(work, before, text)
            continue
        for line in text.splitlines():
            match line.split():
                case ["pip", "install", "tailrace"]:
                    pass  # the wheel of this code is installed
                case ["python", *words]:
                    done = empty_host.run(*words)
                    printed[line] = done.stdout
                    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
                case ["celery", "-A", app, "worker"]:
                    empty_host.start_worker("-c", "1", app=app)
                case _:
                    pytest.fail(f"this test cannot follow {line!r}")
    assert printed["python manage.py tailrace verdict"] == "Healthy\n"
    assert "orders.send_receipt  idle" in printed["python manage.py tailrace queues"]
    return empty_host


def test_a_newcomer_follows_the_page(shop: Host) -> None:
    mails = shop.work / "mails"
    done = shop.manage("shell", "--no-imports", "-c", PAY)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: list(mails.glob("*.log")), what="the receipt is mailed")
    [mail] = mails.glob("*.log")
    assert "To: ann@example.org" in mail.read_text()
    done = shop.manage("check")
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_it_can_be_left_again(shop: Host) -> None:
    """As docs/leaving.md says."""
    shop.stop_workers()
    for app in ("tailrace_jobs", "tailrace_events"):
        assert f"python manage.py migrate {app} zero" in (ROOT / "docs/leaving.md").read_text()
        done = shop.manage("migrate", app, "zero")
        assert done.returncode == 0, done.stderr
    settings = shop.work / "shop/settings.py"
    text = 'INSTALLED_APPS += ["django.contrib.postgres", "tailrace.events", "tailrace.jobs"]\n'
    settings.write_text(settings.read_text().replace(text, ""))
    urls = shop.work / "shop/urls.py"
    line = 'urlpatterns += [path("tailrace/", include("tailrace.jobs.platform.pages.urls"))]\n'
    urls.write_text(urls.read_text().replace(line, ""))
    for name in ("handlers", "event_types", "views"):
        (shop.work / f"orders/{name}.py").unlink()
    done = shop.manage("migrate", "--check")
    assert done.returncode == 0, done.stderr
    done = shop.manage(
        "shell", "--no-imports", "-c",
        "from django.db import connection as c; print(c.introspection.table_names())",
    )  # fmt: skip
    assert "auth_user" in done.stdout
    assert "tailrace" not in done.stdout
