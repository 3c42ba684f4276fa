"""Wrong Kafka settings stop every process at its start, with the variable's name."""

import os
import subprocess
from typing import Any

import pytest

from tailrace.config.devserver import processes
from tailrace.domains.photos.exchange.kafka.settings import KafkaSettings
from tests import forks
from tests.kit import ROOT

pytestmark = pytest.mark.once


def start(*before: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Start as each of our processes does."""
    code = "; ".join([*before, "from tailrace.config.startup import boot", "boot.start()"])
    env = {**os.environ, "DATABASE_URL": "postgres://h/x", "BROKER_URL": "redis://h"}
    return forks.run(
        ["-c", code],
        cwd=ROOT, env=env | variables, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PHOTOS_KAFKA_BROKERS": "kafka.example.org"}, "'kafka.example.org' is not host:port"),
        ({"PHOTOS_KAFKA_BROKERS": "kafka://u:secret@h:1"}, "is not host:port"),
        (
            {"PHOTOS_KAFKA_DLQ_TOPIC": "photo dlq"},
            "PHOTOS_KAFKA_DLQ_TOPIC: 'photo dlq' is not a valid name",
        ),
        ({"PHOTOS_KAFKA_GROUP": "ä"}, "PHOTOS_KAFKA_GROUP: 'ä' is not a valid name"),
        ({"PHOTOS_KAFKA_UPLOADS_TOPIC": "x" * 250}, "PHOTOS_KAFKA_UPLOADS_TOPIC: "),
        (
            {"PHOTOS_KAFKA_BROKERS": "h:1", "PHOTOS_KAFKA_INLET_TOPIC": "photo-uploads"},
            "PHOTOS_KAFKA_UPLOADS_TOPIC: 'photo-uploads' is the topic of PHOTOS_KAFKA_INLET_TOPIC",
        ),
        (
            {"PHOTOS_KAFKA_BROKERS": "h:1", "PHOTOS_KAFKA_INLET_TOPIC": "photo-dlq"},
            "PHOTOS_KAFKA_DLQ_TOPIC: 'photo-dlq' is the topic of PHOTOS_KAFKA_INLET_TOPIC too",
        ),
        ({"PHOTOS_KAFKA_INLET_TOPIC": "in"}, "PHOTOS_KAFKA_INLET_TOPIC: is set, but"),
        ({"PHOTOS_KAFKA_OPTION_ACKS": "0"}, "PHOTOS_KAFKA_OPTION_ACKS: acks is set by Tailrace"),
    ],
)
def test_a_wrong_setting_is_named(
    variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    [problem] = KafkaSettings.load()[1]
    assert message in str(problem)
    assert "secret" not in str(problem)


def test_a_wrong_setting_stops_the_boot() -> None:
    done = start(PHOTOS_KAFKA_BROKERS="kafka://u:secret@h:1")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("tailrace: PHOTOS_KAFKA_BROKERS: 'h:1' is not host:port")


def test_brokers_without_the_package_stop_the_boot() -> None:
    hidden = "import sys; sys.modules['confluent_kafka'] = None"
    done = start(hidden, PHOTOS_KAFKA_BROKERS="h:9092")
    assert done.returncode == 2
    assert "install tailrace[kafka]" in done.stderr
    assert start(hidden).returncode == 0, "without brokers it is not missed"


def test_nothing_imports_the_package_until_it_is_used() -> None:
    code = (
        "import django; django.setup(); import sys; from tailrace.jobs.engine import registry;"
        " registry.discover();"
        "import tailrace.domains.photos.exchange.kafka.consumer;"
        " assert 'confluent_kafka' not in sys.modules"
    )
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tailrace.config.settings"}
    forks.run(["-c", code], cwd=ROOT, env=env, check=True, timeout=300)


def test_options_are_named_as_the_client_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOTOS_KAFKA_OPTION_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("PHOTOS_KAFKA_OPTION_SASL_USERNAME", "u")
    monkeypatch.setenv("PHOTOS_KAFKA_OPTION_SSL_CA", "")
    kafka, problems = KafkaSettings.load()
    options = {"security.protocol": "SASL_SSL", "sasl.username": "u"}
    assert options == kafka.PHOTOS_KAFKA_OPTIONS
    assert not problems


def test_make_run_starts_the_consumer_if_it_has_a_topic(settings: Any) -> None:
    assert "inlet" not in processes.commands()
    settings.PHOTOS_KAFKA_INLET_TOPIC = "photos-in"
    assert "inlet" in processes.commands()
