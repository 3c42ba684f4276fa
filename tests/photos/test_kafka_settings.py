"""Kafka's settings: what is wrong is said by its variable's name, before anything starts."""

import os
import subprocess
import sys

import pytest

from config import kafka, processes, settings
from config.environment import Environment
from tests.kit import ROOT


def start(*before: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Start as each of our processes does."""
    code = "; ".join([*before, "from config import boot", "boot.start()"])
    env = {**os.environ, "DATABASE_URL": "postgres://h/x", "BROKER_URL": "redis://h"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, env=env | variables, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PHOTOS_KAFKA_BROKERS": "kafka.example.org"}, "'kafka.example.org' is not host:port"),
        ({"PHOTOS_KAFKA_BROKERS": "kafka://u:secret@h:1"}, "is not host:port"),
        ({"PHOTOS_KAFKA_DLQ_TOPIC": "photo dlq"}, "PHOTOS_KAFKA_DLQ_TOPIC: 'photo dlq' is not up"),
        ({"PHOTOS_KAFKA_GROUP": "ä"}, "PHOTOS_KAFKA_GROUP: 'ä' is not up to 249 letters"),
        ({"PHOTOS_KAFKA_UPLOADS_TOPIC": "x" * 250}, "PHOTOS_KAFKA_UPLOADS_TOPIC: "),
        (
            {"PHOTOS_KAFKA_BROKERS": "h:1", "PHOTOS_KAFKA_INLET_TOPIC": "photo-uploads"},
            "PHOTOS_KAFKA_UPLOADS_TOPIC: 'photo-uploads' is the topic of PHOTOS_KAFKA_INLET_TOPIC",
        ),
        (
            {"PHOTOS_KAFKA_BROKERS": "h:1", "PHOTOS_KAFKA_INLET_TOPIC": "photo-dlq"},
            "PHOTOS_KAFKA_DLQ_TOPIC: 'photo-dlq' is the topic of PHOTOS_KAFKA_INLET_TOPIC too",
        ),
        ({"PHOTOS_KAFKA_INLET_TOPIC": "in"}, "PHOTOS_KAFKA_INLET_TOPIC: is set, and"),
        ({"PHOTOS_KAFKA_OPTION_ACKS": "0"}, "PHOTOS_KAFKA_OPTION_ACKS: acks is set by Tailrace"),
    ],
)
def test_a_wrong_setting_stops_the_boot(variables: dict[str, str], said: str) -> None:
    done = start(**variables)
    assert done.returncode == 2
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_brokers_without_the_package_stop_the_boot_and_say_what_to_install() -> None:
    hidden = "import sys; sys.modules['confluent_kafka'] = None"
    done = start(hidden, PHOTOS_KAFKA_BROKERS="h:9092")
    assert done.returncode == 2
    assert "pip install -r requirements-kafka.txt" in done.stderr
    assert start(hidden).returncode == 0, "without brokers it is not missed"


def test_nothing_imports_the_package_until_it_is_used() -> None:
    code = (
        "import django; django.setup(); import sys; from jobs import registry; registry.discover();"
        "import domains.photos.kafka.inlet; assert 'confluent_kafka' not in sys.modules"
    )
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True, timeout=60)


def test_options_are_named_as_the_client_names_them() -> None:
    env = Environment({"X_SECURITY_PROTOCOL": "SASL_SSL", "X_SASL_USERNAME": "u", "X_SSL_CA": ""})
    assert kafka.options(env, "X_") == {"security.protocol": "SASL_SSL", "sasl.username": "u"}
    assert not env.problems


def test_make_run_starts_the_inlet_where_it_has_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "inlet" not in processes.names()
    monkeypatch.setattr(settings, "PHOTOS_KAFKA_INLET_TOPIC", "photos-in")
    assert "inlet" in processes.names()
