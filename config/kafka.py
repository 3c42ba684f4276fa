"""Kafka's settings: options of its clients, and what contradicts itself."""

from importlib.util import find_spec

from config.environment import Environment, Problem

OURS = (
    "acks", "auto.offset.reset", "bootstrap.servers", "delivery.timeout.ms", "enable.auto.commit",
    "enable.auto.offset.store", "enable.idempotence", "group.id", "message.timeout.ms",
)  # fmt: skip
"""Options that our promises rest on."""


def options(env: Environment, pattern: str) -> dict[str, str]:
    """The variables that start with `pattern` as options of the clients: SECURITY_PROTOCOL is
    `security.protocol`. One that is not theirs to set becomes a problem."""
    meaning = "option of Kafka's clients, e.g. SECURITY_PROTOCOL, SASL_USERNAME, SSL_CA_LOCATION"
    found = {}
    for key, value in env.by_pattern(pattern, meaning).items():
        name = key.lower().replace("_", ".")
        if name in OURS:
            message = f"{name} is set by Tailrace, which rests on it; take the variable away"
            env.problems.append(Problem(pattern + key, message))
        elif value:
            found[name] = value
    return found


def check(env: Environment, brokers: list[str], inlet: str, outlets: dict[str, str]) -> None:
    """Add to the problems: a missing package, an inlet without brokers, two uses of one topic.

    `outlets` are the topics that we write to, by their variables. An inlet that read one of them
    would take its own messages in for ever.
    """
    if brokers and find_spec("confluent_kafka") is None:
        message = "needs confluent-kafka: `pip install -r requirements-kafka.txt`, or unset it"
        env.problems.append(Problem("PHOTOS_KAFKA_BROKERS", message))
    if inlet and not brokers:
        message = "is set, and PHOTOS_KAFKA_BROKERS is not: name the brokers, or unset it"
        env.problems.append(Problem("PHOTOS_KAFKA_INLET_TOPIC", message))
    used = {inlet: "PHOTOS_KAFKA_INLET_TOPIC"} if inlet else {}
    for name, topic in outlets.items():
        if topic in used:
            message = f"{topic!r} is the topic of {used[topic]} too; give each a topic of its own"
            env.problems.append(Problem(name, message))
        used[topic] = name
