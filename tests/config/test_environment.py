"""Environment variables: read, checked, and named in each message."""

import os
import subprocess
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from tailrace.config.commands.environment import table
from tailrace.config.platform_settings.variables import PlatformSettings, mail_settings
from tailrace.environment.loading import Environment
from tailrace.environment.settings import AppSettings, named_variables
from tailrace.environment.types import NamedUrls
from tests import forks

ROOT = Path(__file__).parents[2]


class Sample(AppSettings):
    prefixes = ("X_",)

    X_SECONDS: float = Field(1.5, ge=0)
    X_ON: bool = True
    X_URLS: Annotated[dict[str, str], NamedUrls(("http", "https"))] = {}
    X_OBS: Annotated[dict[str, str], NamedUrls(("http",), unnamed="obs")] = Field(
        {}, validation_alias="X_OBS_URL"
    )
    X_SECRETS: dict[str, str] = named_variables("X_SECRET_")


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """One of our commands, with some variables changed."""
    return forks.run(
        command,
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("OBS_POLL_SECONDS", "often", "OBS_POLL_SECONDS: 'often' is not a whole number, 1 or more"),
        ("OBS_POLL_SECONDS", "0", "OBS_POLL_SECONDS: '0' is not a whole number, 1 or more"),
        ("DEBUG", "ture", "DEBUG: 'ture' is not yes or no"),
        ("OBS_VIEW", "yaml", "OBS_VIEW: 'yaml' is not json or xml"),
        ("DATABASE_URL", "sqlite:///db.sqlite3", "Tailrace needs PostgreSQL. Set DATABASE_URL to"),
        ("DATABASE_URL", "postgres://h:none/x", "DATABASE_URL: is not a URL"),
        (
            "BROKER_URL",
            "kafka://host",
            "BROKER_URL: 'kafka' is not usable here: use redis",
        ),
        ("BUS_BACKENDS", "main=gopher://host", "BUS_BACKENDS: 'gopher' is not usable here"),
        ("BUS_BACKENDS", "amqp://host", "BUS_BACKENDS: 'amqp://host' has no name; write name=URL"),
        (
            "BUS_BACKENDS",
            "a=file:///x,a=file:///y",
            "BUS_BACKENDS: 'file:///y' has a name that is used twice",
        ),
        ("EMAIL_URL", "imap://host", "EMAIL_URL: 'imap' is not usable here"),
    ],
)
def test_a_wrong_variable_stops_a_process_with_one_line(
    name: str, value: str, message: str
) -> None:
    done = run("manage.py", "migrate", **{name: value})
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_wrong_variable_stops_celery_and_the_web_server() -> None:
    for command in (
        ("-m", "celery", "-A", "tailrace.config", "worker"),
        ("-c", "import tailrace.config.servers.wsgi"),
        ("-c", "import tailrace.config.servers.asgi"),
    ):
        done = run(*command, OBS_POLL_SECONDS="often")
        assert done.returncode == 2, done.stderr
        assert done.stderr.splitlines() == [
            "tailrace: OBS_POLL_SECONDS: 'often' is not a whole number, 1 or more"
        ]


def test_no_message_holds_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_URLS", "x=ldap://me:secret@host,amqp://me:secret@host")
    _, problems = Sample.load()
    assert len(problems) == 2
    assert not any("secret" in str(problem) for problem in problems)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("smtp://a, imap://u:secret@b", "2 of 2, 'b': 'imap' is not usable here: use smtp://"),
        ("smtp://a b.example.org", "'smtp://a b.example.org' is not one host; begin each URL with"),
        ("smtp://u:secret@a:25 smtp+tls://v:secret@a", "'a:25' is listed twice"),
        ("smtp://a filemail:///var/mail", "'filemail' cannot be one of several URLs: use only"),
        ("smtp://u:secret/x@a", "is not a URL: the port must be a number; write / ? # @ in a"),
    ],
)
def test_a_wrong_mail_server_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str, problem: str
) -> None:
    monkeypatch.setenv("EMAIL_URL", value)
    settings, problems = PlatformSettings.load()
    assert settings.EMAIL_URL == []
    (message,) = map(str, problems)
    assert problem in message
    assert "secret" not in message


@pytest.mark.parametrize("separator", [" ", ",", ", ", "\n"])
def test_several_mail_servers(monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    first, second = "smtp+tls://me:a,b@one.example.org:587", "smtp://two.example.org"
    monkeypatch.setenv("EMAIL_URL", f" {first}{separator}{second}, ")
    settings, problems = PlatformSettings.load()
    assert (settings.EMAIL_URL, problems) == ([first, second], [])
    assert mail_settings(first)["EMAIL_HOST_PASSWORD"] == "a,b"
    code = (
        "import tailrace.config.settings as s;"
        " print(s.EMAIL_HOST, s.MORE_MAIL_SERVERS[0]['EMAIL_HOST'])"
    )
    if separator == " ":
        assert run("-c", code).stdout.split() == ["one.example.org", "two.example.org"]


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_SECONDS", "  ")
    monkeypatch.setenv("X_ON", "")
    sample, problems = Sample.load()
    assert sample.X_SECONDS == 1.5
    assert sample.X_ON is True
    assert problems == []


def test_urls_have_names_and_a_single_one_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_URLS", "one=http://a/?x=1, two=https://b")
    monkeypatch.setenv("X_OBS_URL", "http://c/?p=q")
    sample, problems = Sample.load()
    assert sample.X_URLS == {"one": "http://a/?x=1", "two": "https://b"}
    assert sample.X_OBS == {"obs": "http://c/?p=q"}
    assert problems == []


def test_an_unknown_variable_with_our_prefix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_SECOND", "5")
    monkeypatch.setenv("X_SECRET_MAIN", "whsec_x")
    env = Environment([Sample])
    assert env.of(Sample).X_SECRETS == {"MAIN": "whsec_x"}
    assert env.unknown() == ["X_SECOND"]


@pytest.mark.parametrize("name", ["Y_SECONDS", "XSECONDS", "X_SECONSD", "X_SECONDDS"])
def test_a_typing_error_is_an_unknown_variable_whatever_its_prefix(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "5")
    monkeypatch.setenv("SECONDS", "5")
    assert Environment([Sample]).unknown() == [name]


def test_nan_infinity_and_a_negative_are_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("nan", "inf", "-1"):
        monkeypatch.setenv("X_SECONDS", value)
        sample, problems = Sample.load()
        assert sample.X_SECONDS == 1.5
        assert [str(problem) for problem in problems] == [
            f"X_SECONDS: {value!r} is not a number, 0 or more"
        ]


def test_importing_the_settings_starts_and_writes_nothing(tmp_path: Path) -> None:
    var = tmp_path / "var"
    code = (
        "import tailrace.config.settings as s; print(s.DATABASES['default']['HOST'], s.BROKER_URL)"
    )
    done = run("-c", code, TAILRACE_VAR=str(var), DATABASE_URL="", BROKER_URL="")
    assert done.returncode == 0, done.stderr
    assert "redis+socket://" in done.stdout
    assert not var.exists()


def test_the_docs_hold_the_table_of_variables() -> None:
    written = (ROOT / "docs" / "reference" / "settings.md").read_text()
    done = run("manage.py", "environment", TAILRACE_VAR="", DATABASE_URL="", BROKER_URL="")
    assert done.stdout in written
    assert table().count("\n") == done.stdout.strip().count("\n")
    assert f"`{ROOT}" not in written
