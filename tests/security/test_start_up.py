"""Nothing starts with a key that an attacker knows, and each insecure setting is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.config.installed_apps import APPS
from tailrace.config.platform_settings.variables import PlatformSettings
from tailrace.environment.loading import Environment, settings_classes
from tests.config.test_checks import PRODUCTION

ROOT = Path(__file__).parents[2]
KEY_OF_OLD = "insecure-key-of-a-checkout-without-setup"
"""Which anybody could read in the repository."""


def run(var: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a checkout without a key."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "TAILRACE_VAR": str(var), "SECRET_KEY": "", **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    "command",
    [
        (
            "-m",
            "gunicorn",
            "--config",
            "config/servers/gunicorn.py",
            "tailrace.config.servers.wsgi",
        ),
        ("-m", "uvicorn", "tailrace.config.servers.asgi:application"),
        ("-m", "celery", "-A", "tailrace.config", "worker"),
        ("-c", "import tailrace.config.servers.wsgi"),
        ("manage.py", "shell", "-c", "print(1)"),
    ],
)
def test_nothing_serves_links_that_can_be_forged(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = run(tmp_path / "var", *command)
    assert done.returncode == 2, done.stderr
    assert "SECRET_KEY: is not set, and " in done.stderr
    assert "run `tailrace setup` once, or set SECRET_KEY to 50 random characters" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_empty_key_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "secret_key").touch()
    assert run(tmp_path, "manage.py", "shell", "-c", "print(1)").returncode == 2


def test_setup_makes_a_key_of_its_own_and_signs_with_it(tmp_path: Path) -> None:
    var = tmp_path / "var"
    made = run(
        var,
        "-c",
        "from tailrace.config.startup import boot; boot.start('created');"
        " from tailrace.config import settings;"
        "print(settings.SECRET_KEY)",
    )
    key = (var / "secret_key").read_text()
    assert len(key) > 50
    assert made.stdout.strip() == key, made.stderr
    assert run(var, "manage.py", "shell", "-c", "print('starts')").returncode == 0


def test_a_command_that_signs_nothing_has_a_key_that_nobody_knows(tmp_path: Path) -> None:
    done = run(
        tmp_path / "var",
        "-c",
        "from tailrace.config.startup import boot; boot.start('unused');"
        " from tailrace.config import settings;"
        "print(settings.SECRET_KEY)",
    )
    assert len(done.stdout.strip()) > 50
    assert KEY_OF_OLD not in done.stdout
    assert not (tmp_path / "var").exists()


# What an attacker's operator tried, by the id of the rule that names it.
INSECURE = {
    "tailrace.E101": {"DATABASE_URL": ""},
    "tailrace.E102": {"BROKER_URL": ""},
    "tailrace.E103": {"SECRET_KEY": ""},
    "tailrace.E104": {"PUBLIC_URL": "https://localhost"},
    "tailrace.E105": {"ALLOWED_HOSTS": "*"},
    "tailrace.E106": {"ALLOWED_HOSTS": "other.example.org"},
    "tailrace.E107": {"EMAIL_URL": "filemail:///tmp/mails"},
    "tailrace.E108": {"FLOWER_BASIC_AUTH": "me:short"},
    "tailrace.E109": {"BUS_BACKENDS": "hook=https://hooks.example.org/in"},
    "tailrace.E110": {"ENCRYPTION_KEYS": ""},
    "tailrace.E111": {"EMAIL_URL": "smtp://me:long-password@mail.example.org:25"},
    "tailrace.E112": {"ENCRYPTION_KEYS": "A" * 43},
    "tailrace.E113": {"DATABASE_URL": "postgres://me@db.example.org/x?sslmode=require"},
    "tailrace.E114": {"BROKER_URL": "rediss://redis.example.org:6379/0"},
    "tailrace.E115": {"WEB_HOST": "0.0.0.0"},
    "tailrace.E116": {"WEB_PROXIES": "0.0.0.0/0"},
    "tailrace.E117": {"WEBHOOK_ALLOW_HTTP": "yes"},
    "tailrace.E118": {"WEBHOOK_ALLOWED_NETWORKS": "0.0.0.0/0"},
    "tailrace.E119": {"HEALTH_TOKEN": "short"},
    "tailrace.W101": {"PUBLIC_URL": "http://tailrace.example.org"},
    "tailrace.W102": {"LOG_FORMAT": "console"},
    "tailrace.W103": {
        "SMS_URL": "http://sms.example.org/Accounts/x",
        "SMS_TOKEN": "long-password",
        "SMS_FROM": "+4930000000",
    },
    "tailrace.W104": {"BUS_BACKENDS": "main=amqp://me:long-password@bus.example.org/obs"},
    "tailrace.W105": {"BUS_SOURCE_URL": "amqp://me:long-password@bus.example.org/obs"},
    "tailrace.W106": {"OBS_BACKEND_URL": "http://backend.example.org"},
    "tailrace.W107": {"PHOTOS_KAFKA_BROKERS": "kafka.example.org:9092"},
    "tailrace.W108": {"DATABASE_URL": "postgres://me:long-password@db.example.org/x"},
    "tailrace.W109": {"BROKER_URL": "redis://:long-password@redis.example.org:6379/0"},
    "tailrace.W110": {"SENTRY_DSN": "http://long-password@sentry.example.org/1"},
    "tailrace.W113": {"REQUIRE_SECOND_FACTOR": "no"},
    "tailrace.I101": {"VAPID_PRIVATE_KEY": ""},
    "tailrace.I102": {"SMS_URL": ""},
}
ACCEPTABLE = {"tailrace.I101", "tailrace.I102"}
"""What PRODUCTION leaves out."""


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch):
    """Return what `check --deploy` says of production with these variables changed."""

    def check(**variables: str) -> dict[str, str]:
        for name, value in {**PRODUCTION, **variables}.items():
            monkeypatch.setenv(name, value)
        env = Environment([PlatformSettings, *settings_classes(APPS)])
        assert not env.problems
        return {str(each.id): f"{each.msg} {each.hint}" for each in env.insecure()}

    return check


def test_each_rule_is_tried() -> None:
    classes = [PlatformSettings, *settings_classes(APPS)]
    ids = [rule.id for cls in classes for rule in cls.insecure]
    assert sorted(ids) == sorted(INSECURE)


@pytest.mark.parametrize(("id", "variables"), INSECURE.items())
def test_an_insecure_setting_is_named_with_a_way_out(id: str, variables, messages) -> None:
    errors = messages(**variables)
    assert id in errors
    assert set(errors) <= {id} | ACCEPTABLE
    setting = "BUS_WEBHOOK_SECRET" if id == "tailrace.E109" else next(iter(variables))
    assert errors[id].startswith(f"{setting}: ")
    assert errors[id].endswith(".")
    assert "long-password" not in errors[id]


@pytest.mark.parametrize(
    "variables",
    [
        {"DATABASE_URL": "postgres://me@/x?host=/var/run/postgresql"},
        {"DATABASE_URL": "postgres://me@%2Fvar%2Frun%2Fpostgresql/x"},
        {"DATABASE_URL": "postgres://me@127.0.0.1/x", "BROKER_URL": "redis://localhost:6379"},
        {"BROKER_URL": "redis+socket:///run/redis.sock?virtual_host=0"},
        {"DATABASE_URL": "postgres://me@db.example.org/x?sslmode=verify-full&sslcert=me.pem"},
        {"EMAIL_URL": "smtp://localhost:25"},
        {"WEB_HOST": "0.0.0.0", "WEB_PROXIES": "10.1.2.3"},
        {"WEBHOOK_ALLOWED_NETWORKS": "10.20.0.0/16"},
    ],
)
def test_what_stays_on_this_machine_is_no_finding(variables, messages) -> None:
    assert set(messages(**variables)) == ACCEPTABLE


def test_the_mail_server_that_gets_passwords_unencrypted_is_named(messages) -> None:
    urls = "smtp+tls://me:long-password@a.example.org smtp://me:long-password@b.example.org"
    assert messages(EMAIL_URL=urls)["tailrace.E111"].endswith(
        "EMAIL_URL: sends mails and the password unencrypted to b.example.org Set it to"
        " smtp+tls://user:password@host:587."
    )


@pytest.mark.parametrize(
    "network", ["0.0.0.0/1", "127.0.0.1", "169.254.169.254", "::/0", "fe80::1"]
)
def test_a_network_with_the_clouds_credentials_is_named(network: str, messages) -> None:
    assert network in messages(WEBHOOK_ALLOWED_NETWORKS=network)["tailrace.E118"]
