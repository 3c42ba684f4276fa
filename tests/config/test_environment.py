"""Environment variables: read, checked, and named in each message."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.environment import Environment
from config.management.commands.environment import table

ROOT = Path(__file__).parents[2]


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """One of our commands, with some variables changed."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OBS_POLL_SECONDS", "often", "OBS_POLL_SECONDS: 'often' is not a whole number, 1 or more"),
        ("OBS_POLL_SECONDS", "0", "OBS_POLL_SECONDS: '0' is not a whole number, 1 or more"),
        ("DEBUG", "ture", "DEBUG: 'ture' is not yes or no"),
        ("OBS_VIEW", "yaml", "OBS_VIEW: 'yaml' is not json or xml"),
        ("DATABASE_URL", "sqlite:///db.sqlite3", "Tailrace needs PostgreSQL. Set DATABASE_URL to"),
        ("DATABASE_URL", "postgres://h:none/x", "DATABASE_URL: is not a URL"),
        ("BROKER_URL", "kafka://host", "BROKER_URL: 'kafka' is not usable here: starts with redis"),
        ("BUS_BACKENDS", "main=gopher://host", "BUS_BACKENDS: 'gopher' is not usable here"),
        ("BUS_BACKENDS", "amqp://host", "BUS_BACKENDS: 'amqp://host' has no name; write name=URL"),
        ("BUS_BACKENDS", "a=file:///x,a=file:///y", "BUS_BACKENDS: 'file:///y' is there twice"),
        ("EMAIL_URL", "imap://host", "EMAIL_URL: 'imap' is not usable here"),
    ],
)
def test_a_wrong_variable_stops_every_process_with_one_line_that_names_it(
    name: str, value: str, said: str
) -> None:
    done = run("manage.py", "migrate", **{name: value})
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_wrong_variable_stops_celery_and_the_web_server_in_the_same_way() -> None:
    for command in (
        ("-m", "celery", "-A", "config", "worker"),
        ("-c", "import config.wsgi"),
        ("-c", "import config.asgi"),
    ):
        done = run(*command, OBS_POLL_SECONDS="often")
        assert done.returncode == 2, done.stderr
        assert done.stderr.splitlines() == [
            "tailrace: OBS_POLL_SECONDS: 'often' is not a whole number, 1 or more"
        ]


def test_no_message_holds_a_password() -> None:
    env = Environment({"BUS_BACKENDS": "x=ldap://me:secret@host,amqp://me:secret@host"})
    env.urls("BUS_BACKENDS", {}, ("amqp",), "")
    assert len(env.problems) == 2
    assert not any("secret" in str(problem) for problem in env.problems)


def test_an_empty_variable_counts_as_not_set() -> None:
    env = Environment({"OBS_POLL_SECONDS": "  ", "DEBUG": ""})
    assert env.number("OBS_POLL_SECONDS", 17, "") == 17
    assert env.flag("DEBUG", True, "") is True
    assert env.problems == []


def test_urls_are_read_by_name_and_a_single_one_needs_none() -> None:
    read = Environment({"A": "one=http://a/?x=1, two=https://b", "B": "http://c/?p=q"})
    assert read.urls("A", {}, ("http", "https"), "") == {"one": "http://a/?x=1", "two": "https://b"}
    assert read.urls("B", {}, ("http",), "", unnamed="obs") == {"obs": "http://c/?p=q"}
    assert read.problems == []


def test_an_unknown_variable_with_our_prefix_is_named_with_the_nearest_known_one() -> None:
    env = Environment({"OBS_POL_SECONDS": "5", "BUS_SECRET_MAIN": "whsec_x", "PATH": "/bin"})
    env.number("OBS_POLL_SECONDS", 17, "")
    assert env.by_pattern("BUS_SECRET_", "") == {"MAIN": "whsec_x"}
    found = [str(problem) for problem in env.unknown()]
    assert found == ["OBS_POL_SECONDS: no such setting; did you mean 'OBS_POLL_SECONDS'?"]


def test_not_a_number_and_infinity_are_no_numbers() -> None:
    for value in ("nan", "inf", "-1"):
        env = Environment({"X": value})
        assert env.number("X", 1.5, "") == 1.5
        assert len(env.problems) == 1


def test_importing_the_settings_starts_and_writes_nothing(tmp_path: Path) -> None:
    var = tmp_path / "var"
    code = "import config.settings as s; print(s.DATABASES['default']['HOST'], s.BROKER_URL)"
    done = run("-c", code, TAILRACE_VAR=str(var), DATABASE_URL="", BROKER_URL="")
    assert done.returncode == 0, done.stderr
    assert "redis+socket://" in done.stdout
    assert not var.exists()


def test_the_documentation_lists_every_variable_with_its_default() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()
    done = run("manage.py", "environment", TAILRACE_VAR="", DATABASE_URL="", BROKER_URL="")
    for line in done.stdout.splitlines():
        assert line in written
    assert table().count("\n") == done.stdout.strip().count("\n")
    assert f"`{ROOT}" not in written
