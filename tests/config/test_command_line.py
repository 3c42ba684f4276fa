"""The command `tailrace`, and `manage.py tailrace` of a project."""

import os
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command, get_commands

from tailrace.config import command_line
from tailrace.events.management.subcommands import PACKAGE, all_subcommands, call_subcommand
from tests import forks
from tests.kit import ROOT

MANAGE = ("manage.py",)
MODULE = ("-m", "tailrace")


def run(
    *words: str, env: dict[str, str] | None = None, forked: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run Python with these words."""
    variables = (env or dict(os.environ)) | {
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "200",
        "DJANGO_SETTINGS_MODULE": "tailrace.config.settings",
    }
    start = forks.run if forked else subprocess.run
    return start(
        words if forked else [sys.executable, *words],
        cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_a_project_gets_one_command() -> None:
    ours = {name for name, app in get_commands().items() if app.split(".")[0] == PACKAGE}
    assert ours == {"tailrace"}
    assert {"verdict", "jobs", "events", "queues", "stats", "run"} <= all_subcommands().keys()


def test_none_of_ours_hides_one_of_djangos() -> None:
    assert all_subcommands().keys() & get_commands().keys() == set()


def test_what_needs_no_engines_and_makes_keys_are_commands() -> None:
    known = all_subcommands().keys() | get_commands().keys() | {"", "help", "version"}
    assert known >= command_line.WITHOUT_ENGINES
    assert known >= command_line.OWN_KEYS.keys()


@pytest.mark.once
@pytest.mark.parametrize("program", [MANAGE, (*MANAGE, "tailrace")])
def test_without_a_command_all_are_listed_app_by_app(program: tuple[str, ...]) -> None:
    done = run(*program)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    apps = ["events", "jobs", "web", "subscriptions", "domains.builds", "config"]
    assert [line for line in lines if line in apps] == apps
    rows = dict(line.split(maxsplit=1) for line in lines if "  " in line)
    assert rows["queues"] == "List the queues, or pause or resume one"
    assert rows.keys() >= all_subcommands().keys()
    assert max(map(len, lines)) < 120
    assert ("migrate" in lines) == (program == MANAGE)


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "words", "forked"),
    [
        ("manage.py explain", (*MANAGE, "explain", "--help"), True),
        ("python -m tailrace explain", (*MODULE, "explain", "--help"), False),
        ("manage.py tailrace explain", (*MANAGE, "tailrace", "help", "explain"), True),
    ],
)
def test_help_shows_how_it_was_called(name: str, words: tuple[str, ...], forked: bool) -> None:
    done = run(*words, forked=forked)
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: {name} [-h] [--json]")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ((*MODULE, "fsck", "--kind", "jobs.no_such_kind"), 2, "jobs.no_such_kind"),
        pytest.param(
            (*MANAGE, "tailrace", "fsck", "--kind", "jobs.no_such_kind"), 2, "jobs.no_such_kind",
            marks=pytest.mark.long,
        ),
        ((*MANAGE, "tailrace", "explain", "--json", "7"), 1, "job 7"),
        (
            (*MANAGE, "verdit"),
            1,
            "manage.py: there is no command 'verdit'; did you mean 'verdict'? `manage.py` lists",
        ),
        ((*MANAGE, "migrat"), 1, "did you mean 'migrate'?"),
        (
            (*MANAGE, "tailrace", "migrat"),
            1,
            "manage.py tailrace: there is no command 'migrat'; `manage.py tailrace` lists all\n",
        ),
    ],
)  # fmt: skip
def test_status_and_message(
    process_env: dict[str, str], words: tuple[str, ...], status: int, message: str
) -> None:
    done = run(*words, env=process_env)
    assert done.returncode == status, done.stderr
    assert message in done.stderr


@pytest.mark.django_db
def test_from_python() -> None:
    out, same = StringIO(), StringIO()
    call_command("tailrace", "jobs", "list", "--limit", "3", stdout=out)
    call_subcommand("jobs", "list", limit=3, stdout=same)
    assert out.getvalue() == same.getvalue()
    assert out.getvalue().startswith("id ")
    with pytest.raises(CommandError, match="there is no job 7"):
        call_command("tailrace", "jobs", "show", 7)
    with pytest.raises(CommandError, match="no command 'job'; did you mean 'jobs'"):
        call_command("tailrace", "job")
    listed = StringIO()
    call_command("tailrace", stdout=listed)
    assert "List the queues" in listed.getvalue()
