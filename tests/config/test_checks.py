"""System checks: what is wrong and what production lacks is named by its variable."""

import os
import subprocess
from pathlib import Path

import pytest

from tailrace.config.startup.checks import apps_not_installed, tracing_problems
from tests import forks

ROOT = Path(__file__).parents[2]

PRODUCTION = {
    "DATABASE_URL": "postgres://tailrace:long-password@db.example.org/tailrace?sslmode=verify-full",
    "BROKER_URL": "rediss://:long-password@redis.example.org:6379/0",
    "SECRET_KEY": "uYt3-0pQz_9aLmWk2RcXv8nBsD4fGh6JeT1oIyZqA5wUxKrM7C",
    "PUBLIC_URL": "https://tailrace.example.org",
    "EMAIL_URL": "smtp+tls://me:long-password@mail.example.org:587",
    "FLOWER_BASIC_AUTH": "me:long-enough-password",
    "LOG_FORMAT": "json",
    "ENCRYPTION_KEYS": "c3VmZmljaWVudGx5LWxvbmctc2VjcmV0LXdvcmRzLi4",
    "BUS_BACKENDS": "main=amqps://me:long-password@bus.example.org/obs",
}


def check(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`manage.py check` with its own environment and the project's settings."""
    own = {
        "DATABASE_URL": "",
        "BROKER_URL": "",
        "DJANGO_SETTINGS_MODULE": "tailrace.config.settings",
    }
    return forks.run(
        ["manage.py", "check", *arguments],
        cwd=ROOT,
        env={**os.environ, **own, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_check_passes_without_variables_and_engines(tmp_path: Path) -> None:
    done = check(TAILRACE_VAR=str(tmp_path / "var"))
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "var").exists()


def test_check_names_every_wrong_variable_at_once_but_shows_no_key() -> None:
    done = check(
        DATABASE_URL="sqlite:///x.db",
        OBS_POLL_SECONDS="often",
        BUS_BACKEND="file:///x",
        BUS_WEBHOOK_SECRET="hunter2",
        BUS_SECRET_MAIN="hunter3",
        ENCRYPTION_KEYS=f"{PRODUCTION['ENCRYPTION_KEYS']},short-hunter2",
        VAPID_PRIVATE_KEY="short-hunter3",
        WEBHOOK_ALLOWED_NETWORKS="10.0.0.1/8",
        WEBHOOK_ALOW_HTTP="yes",
        WEBHOOK_CA_FILE="/no/such.pem",
        SMS_URL="https://sms.example.org/send",
    )
    assert done.returncode == 1
    assert "(tailrace.E001) DATABASE_URL: 'sqlite' is not usable here" in done.stderr
    assert "leave it empty to use the embedded PostgreSQL" in done.stderr
    assert "OBS_POLL_SECONDS" in done.stderr
    assert "BUS_BACKEND: no such setting; did you mean 'BUS_BACKENDS'?" in done.stderr
    assert "BUS_WEBHOOK_SECRET: does not start with whsec_" in done.stderr
    assert "BUS_SECRET_MAIN: does not start with whsec_" in done.stderr
    for words in (
        "ENCRYPTION_KEYS: key 2 of 2 is not 32 bytes in urlsafe base64",
        "VAPID_PRIVATE_KEY: is not 32 bytes in urlsafe base64",
        "WEBHOOK_ALLOWED_NETWORKS: 10.0.0.1/8 has host bits set; write e.g. 10.0.0.0/8",
        "WEBHOOK_ALOW_HTTP: no such setting; did you mean 'WEBHOOK_ALLOW_HTTP'?",
        "WEBHOOK_CA_FILE: '/no/such.pem' is not a file",
        "SMS_TOKEN: is not set, and SMS_URL needs it",
        "SMS_FROM: is not set, and SMS_URL needs it",
        "SMS_URL: has no account in its path",
    ):
        assert words in done.stderr
    assert "hunter" not in done.stderr


def test_deploy_names_what_production_needs() -> None:
    done = check("--deploy", DEBUG="yes", ALLOWED_HOSTS="*")
    assert done.returncode == 1
    for name in (
        "DATABASE_URL: is not set",
        "BROKER_URL: is not set",
        "SECRET_KEY: is not set",
        "PUBLIC_URL: is not set or local",
        "EMAIL_URL: is not a mail server",
        "ENCRYPTION_KEYS: is not set",
        "VAPID_PRIVATE_KEY: is not set, so no push messages are sent",
        "SMS_URL: is not set, so no text messages are sent",
        "FLOWER_BASIC_AUTH: is not set",
        "ALLOWED_HOSTS: * accepts any Host header",
        "LOG_FORMAT: is not json",
        "You should not have DEBUG set to True in deployment",
    ):
        assert name in done.stderr


def test_deploy_is_content_with_a_production_environment() -> None:
    done = check("--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_deploy_needs_the_public_host_and_signed_webhooks() -> None:
    """Which rule names what is in tests/security/test_start_up.py."""
    variables = {
        **PRODUCTION,
        "ALLOWED_HOSTS": "other.example.org",
        "BUS_BACKENDS": "hook=https://hooks.example.org/in",
    }
    done = check("--deploy", **variables)
    assert "ALLOWED_HOSTS: does not contain tailrace.example.org" in done.stderr
    assert "BUS_WEBHOOK_SECRET: is not set, but bus backend hook needs it" in done.stderr
    signed = check(
        "--deploy",
        **variables | {"PUBLIC_URL": "http://tailrace.example.org"},
        BUS_SECRET_HOOK="whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz",
    )
    assert "BUS_WEBHOOK_SECRET" not in signed.stderr
    assert "PUBLIC_URL: is not https" in signed.stderr
    assert_no_secret(done, signed)


def assert_no_secret(*outputs: subprocess.CompletedProcess[str]) -> None:
    printed = "".join(done.stdout + done.stderr for done in outputs)
    for secret in ("long-password", "long-enough-password", PRODUCTION["SECRET_KEY"]):
        assert secret not in printed


def test_an_app_that_is_not_installed_is_named(tmp_path: Path) -> None:
    files = "shop/handlers.py", "domains/rooms/event_types.py", "docs/guide.md", "jobs/handlers.py"
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    warnings = list(apps_not_installed(tmp_path))
    assert [(each.msg, each.hint) for each in warnings] == [
        (
            f"{tmp_path}/domains/rooms/event_types.py is not used:"
            " 'tailrace.domains.rooms' is not an installed app",
            "add 'tailrace.domains.rooms' to APPS in config/installed_apps.py",
        ),
        (
            f"{tmp_path}/shop/handlers.py is not used: 'tailrace.shop' is not an installed app",
            "add 'tailrace.shop' to APPS in config/installed_apps.py",
        ),
    ]
    assert list(apps_not_installed(ROOT)) == []


def test_what_keeps_spans_from_being_sent_is_named() -> None:
    wanted = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert list(tracing_problems(wanted, lambda: True)) == []
    assert list(tracing_problems({}, lambda: False)) == []
    (missing,) = tracing_problems(wanted, lambda: False)
    assert "tailrace[tracing]" in missing.hint
    grpc = wanted | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    (unsupported,) = tracing_problems(grpc, lambda: True)
    assert "'grpc'" in unsupported.msg
