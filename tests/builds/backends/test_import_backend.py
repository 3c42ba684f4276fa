"""`manage.py import_backend`: all projects and packages of a backend, read once."""

import io
import subprocess
import time
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import connection

from tailrace.domains.builds.backends.import_all import MAX_FAILURES_IN_ROW
from tailrace.domains.builds.models import Package, Project, RoleHolder
from tailrace.events.management.subcommands import call_subcommand
from tailrace.jobs.models import Breaker
from tests import forks
from tests.kit import PATIENCE, ROOT, wait_until
from tests.servers import backend as servers

pytestmark = pytest.mark.django_db(transaction=True)
PROJECTS, PACKAGES = 6, 18


def run(*names: str, status: int = 0, **options: Any) -> str:
    """Return what the command printed; it must end with this status."""
    out = io.StringIO()
    ended = 0
    try:
        call_subcommand("import_backend", *names, stdout=out, per_second=1000, **options)
    except SystemExit as exit:
        ended = int(str(exit.code))
    assert ended == status, out.getvalue()
    return out.getvalue()


def read(backend: servers.TestBackend) -> list[str]:
    """Return the paths that were requested since the last call."""
    paths = [request.path for request in backend.requests]
    backend.requests.clear()
    return paths


def test_all_projects_and_packages_are_read(backend: servers.TestBackend) -> None:
    backend.metadata.write_meta(
        '<project name="secret"><title/><access><disable/></access></project>', "secret"
    )
    text = run()
    assert "main: 7 of 7 projects processed: 7 projects and 18 packages read" in text
    assert (Project.objects.count(), Package.objects.count()) == (PROJECTS + 1, PACKAGES)
    assert Project.objects.get(hidden=True).name == "secret"
    assert RoleHolder.objects.filter(project="home:alice", package="", user="alice").exists()
    assert RoleHolder.objects.filter(project="home:alice", package="hello", user="carol").exists()
    assert Package.objects.filter(project="openSUSE:Factory", devel_project="devel:tools").exists()


def test_a_second_run_reads_nothing_again(backend: servers.TestBackend) -> None:
    run()
    read(backend)
    text = run("main")
    assert read(backend) == ["/source"]
    assert "0 projects and 0 packages read, 6 projects" in text
    backend.metadata.write_meta('<project name="new"><title/></project>', "new")
    assert "1 projects and 0 packages read, 6 projects" in run()


def test_what_was_read_before_a_time_is_read_again(backend: servers.TestBackend) -> None:
    run()
    assert "0 projects and 0 packages read" in run(since="2026-01-01T00:00")
    assert "6 projects and 18 packages read" in run(since="2126-01-01T00:00")


def test_a_run_that_was_killed_continues_where_it_was(
    backend: servers.TestBackend, process_env: dict[str, str]
) -> None:
    process = forks.Fork(
        ["manage.py", "import_backend", "main", "--per-second", "20"],
        env=process_env | {"OBS_BACKEND_URL": f"main={backend.url}"}, cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: Package.objects.count() >= 4)
    finally:
        process.kill()
        process.wait(PATIENCE)
    wait_until(lambda: not _sessions_of_others())
    stored = set(Package.objects.values_list("project", "name"))
    assert 4 <= len(stored) < PACKAGES
    read(backend)
    run()
    again = read(backend)
    assert not {f"/source/{project}/{name}/_meta" for project, name in stored} & set(again)
    assert Package.objects.count() == PACKAGES
    assert not Project.objects.filter(imported_at=None).exists()


def _sessions_of_others() -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND state <> 'idle' AND pid <> pg_backend_pid()"
        )
        return cursor.fetchall()


def test_it_keeps_the_pace(backend: servers.TestBackend) -> None:
    began = time.monotonic()
    call_subcommand("import_backend", stdout=io.StringIO(), per_second=100)
    requests = len(read(backend))
    assert requests == 1 + 2 * PROJECTS + 2 * PACKAGES
    assert time.monotonic() - began >= (requests - 3) / 100


def test_what_fails_is_named_and_read_by_the_next_run(backend: servers.TestBackend) -> None:
    backend.broken = {"/home:alice/hello/", "/devel:tools/_meta"}
    text = run(status=1)
    assert "5 projects and 14 packages read" in text
    assert "2 failed" in text
    assert "  home:alice/hello: " in text
    assert "answered 500: broken" in text
    assert "Run it again" in text
    backend.broken.clear()
    assert "1 projects and 4 packages read" in run()
    assert Package.objects.count() == PACKAGES


def test_many_broken_packages_do_not_stop_it(backend: servers.TestBackend) -> None:
    backend.broken = {"/broken"}
    for number in range(3 * MAX_FAILURES_IN_ROW):
        backend.metadata.write_meta("<package/>", "home:alice", f"broken{number:02}")
    text = run(status=1)
    assert f"{3 * MAX_FAILURES_IN_ROW} failed" in text
    assert text.startswith("100%  6 of 6 projects, 18 packages read, ")
    assert text.count("100%") == 1
    assert not Breaker.objects.exclude(open_until=None).exists(), "others may send requests"
    assert Package.objects.count() == PACKAGES


def test_a_backend_that_fails_stops_it_soon(backend: servers.TestBackend) -> None:
    backend.broken = {"/"}
    assert "the projects cannot be listed: 127.0.0.1:" in run(status=1)


def test_a_backend_that_fails_later_stops_it_soon(backend: servers.TestBackend) -> None:
    for number in range(50):
        backend.metadata.write_meta("<project/>", f"a{number}")
    backend.broken = {"_meta", "^/$"}
    text = run(status=1)
    assert "stopped, because the backend is not working: 127.0.0.1:" in text
    assert len(read(backend)) == 1 + MAX_FAILURES_IN_ROW + 1


def test_it_imports_several_backends(backend: servers.TestBackend, settings) -> None:
    settings.OBS_BACKENDS |= {"away": "http://127.0.0.1:9"}
    text = run(status=1)
    assert "main: 6 of 6 projects" in text
    assert "away: 0 of 0 projects" in text
    assert "the projects cannot be listed: 127.0.0.1:9: " in text
    assert set(Project.objects.values_list("backend", flat=True)) == {"main"}


@pytest.mark.parametrize(
    ("names", "options", "error"),
    [
        (["mian"], {}, "OBS_BACKEND_URL has no backend 'mian'; did you mean 'main'?"),
        ([], {"per_second": 0}, "--per-second must be"),
        ([], {"since": "yesterday"}, "--since 'yesterday' is not a time"),
    ],
)
def test_wrong_arguments_are_named(backend, names, options, error) -> None:
    with pytest.raises(CommandError, match=error[:20]) as raised:
        call_subcommand("import_backend", *names, **options)
    assert raised.value.returncode == 2
    assert error in str(raised.value)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar(backend: servers.TestBackend) -> None:
    out = Terminal()
    call_subcommand("import_backend", stdout=out, per_second=1000, no_color=True)
    bar = out.getvalue().split("\r")[-1].splitlines()[0].rstrip()
    assert bar == f"[{'#' * 30}] 6 of 6 projects, 18 packages read, done"
