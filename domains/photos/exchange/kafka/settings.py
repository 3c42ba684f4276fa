import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Annotated

from pydantic import AfterValidator

from tailrace.environment.insecure import Insecure, is_loopback
from tailrace.environment.settings import AppSettings, Problem, named_variables
from tailrace.environment.types import Rule, masked, split

HOST_AND_PORT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):[0-9]{1,5}")
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
RESERVED_OPTIONS = {
    "acks", "auto.offset.reset", "bootstrap.servers", "delivery.timeout.ms", "enable.auto.commit",
    "enable.auto.offset.store", "enable.idempotence", "group.id", "message.timeout.ms",
}  # fmt: skip
"""Client options that users cannot set, because the delivery guarantees depend on them."""


class Brokers(Rule):
    """Addresses of brokers, separated by commas."""

    kind = "host:port, by commas"

    def read(self, text: str) -> list[str]:
        brokers = split(text)
        if wrong := [broker for broker in brokers if not HOST_AND_PORT.fullmatch(broker)]:
            message = "{!r} is not host:port; write e.g. kafka.example.org:9092"
            raise ValueError(*(message.format(masked(broker)) for broker in wrong))
        return brokers


class Topic(Rule):
    """The name of a topic or consumer group, by Kafka's rules."""

    kind = "name"

    def read(self, text: str) -> str:
        if not TOPIC.fullmatch(text) or text in (".", ".."):
            advice = "use up to 249 letters, digits, dots, _ and -"
            raise ValueError(f"{text!r} is not a valid name; {advice}")
        return text


def client_options(variables: dict[str, str]) -> dict[str, str]:
    """Return the options by the client's names: SECURITY_PROTOCOL becomes `security.protocol`."""
    return {key.lower().replace("_", "."): value for key, value in variables.items() if value}


TopicName = Annotated[str, Topic()]


class KafkaSettings(AppSettings):
    """The Kafka cluster to which events are published and from which photos are read."""

    insecure = (
        Insecure(
            "tailrace.W107",
            "PHOTOS_KAFKA_BROKERS: {} is reached unencrypted",
            lambda own: own._brokers_without_tls(),
            "Set PHOTOS_KAFKA_OPTION_SECURITY_PROTOCOL to SSL or SASL_SSL.",
        ),
    )

    PHOTOS_KAFKA_BROKERS: Annotated[list[str], Brokers()] = []
    """Kafka brokers that photos and gatherings are announced to; empty: none"""
    PHOTOS_KAFKA_UPLOADS_TOPIC: TopicName = "photo-uploads"
    """topic for each photo that was uploaded"""
    PHOTOS_KAFKA_UPDATES_TOPIC: TopicName = "event-updates"
    """topic for changes of gatherings, in order per gathering"""
    PHOTOS_KAFKA_DLQ_TOPIC: TopicName = "photo-dlq"
    """topic for incoming messages that cannot be read"""
    PHOTOS_KAFKA_INLET_TOPIC: TopicName = ""
    """topic that photos are read from; empty: none are read"""
    PHOTOS_KAFKA_GROUP: TopicName = "tailrace-photos"
    """group of consumers that reads that topic"""
    PHOTOS_KAFKA_OPTIONS: Annotated[dict[str, str], AfterValidator(client_options)] = (
        named_variables("PHOTOS_KAFKA_OPTION_")
    )
    """option of Kafka's clients, e.g. SECURITY_PROTOCOL, SASL_USERNAME, SSL_CA_LOCATION"""

    def conflicts(self) -> Iterator[Problem]:
        """Yield reserved options, a missing package, and conflicting topics."""
        for option in sorted(RESERVED_OPTIONS & self.PHOTOS_KAFKA_OPTIONS.keys()):
            name = option.upper().replace(".", "_")
            message = f"{option} is set by Tailrace and cannot be changed; remove the variable"
            yield Problem(f"PHOTOS_KAFKA_OPTION_{name}", message)
        if self.PHOTOS_KAFKA_BROKERS and find_spec("confluent_kafka") is None:
            message = "needs confluent-kafka: install tailrace[kafka], or unset it"
            yield Problem("PHOTOS_KAFKA_BROKERS", message)
        if self.PHOTOS_KAFKA_INLET_TOPIC and not self.PHOTOS_KAFKA_BROKERS:
            message = "is set, but PHOTOS_KAFKA_BROKERS is not; set the brokers, or unset the topic"
            yield Problem("PHOTOS_KAFKA_INLET_TOPIC", message)
        yield from self._topics_used_twice()

    def _brokers_without_tls(self) -> str:
        protocol = self.PHOTOS_KAFKA_OPTIONS.get("security.protocol", "").lower()
        encrypted = protocol in ("ssl", "sasl_ssl")
        return ", ".join(
            broker
            for broker in self.PHOTOS_KAFKA_BROKERS
            if not encrypted and not is_loopback(broker.rpartition(":")[0])
        )

    def _topics_used_twice(self) -> Iterator[Problem]:
        """Yield each topic that has two uses. If the inlet read a topic that Tailrace writes, each
        photo would be read and published again without end."""
        variables: dict[str, str] = {}
        for kind in ("INLET", "UPLOADS", "UPDATES", "DLQ"):
            name = f"PHOTOS_KAFKA_{kind}_TOPIC"
            topic = getattr(self, name)
            if topic and topic in variables:
                message = f"{topic!r} is the topic of {variables[topic]} too; use different topics"
                yield Problem(name, message)
            variables[topic] = name
