"""Run the suite on this machine's PostgreSQL, Redis and RabbitMQ, where they answer.

Usage: test_services.py [pytest arguments]. Two passes, each with databases, key spaces
and vhosts of its own: on PostgreSQL with Redis (and the bus on RabbitMQ), then what goes through
the broker once more with RabbitMQ as the broker. What is the same on all engines, and what is slow
without going through the broker, is left to `make test`. Services elsewhere are named by
TEST_DATABASE_URL, TEST_BROKER_URL and TEST_AMQP_URL.
"""

import os
import shutil
import socket
import subprocess
import sys

DATABASE = "tailrace_services"
KEY_SPACE = 8
VHOST = "tailrace_services"
WANTED = "not once and (broker or not slow)"
WORKERS = ("", "_gw0", "_gw1", "_gw2", "_gw3")


def main(arguments: list[str]) -> int:
    """Run the passes; give the first status that is not 0."""
    database, redis, amqp = postgres_url(), redis_url(), amqp_url()
    if not database or not redis:
        say("no second pass: PostgreSQL and Redis do not both answer on this machine")
        return 0
    common = {"DATABASE_URL": database, "TEST_AMQP_URL": amqp}
    say(f"pass on PostgreSQL and Redis{' and RabbitMQ' if amqp else ''} of this machine")
    status = suite({**common, "BROKER_URL": redis}, ["-m", WANTED, *arguments])
    if status or not amqp:
        return status
    say("pass with RabbitMQ as the broker")
    return suite({**common, "BROKER_URL": amqp}, ["-m", "broker and not once", *arguments])


def suite(variables: dict[str, str], arguments: list[str]) -> int:
    """pytest with these variables; gives its status."""
    given = {key: value for key, value in variables.items() if value}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], env={**os.environ, **given}
    ).returncode


def postgres_url() -> str:
    """A database of our own on the machine's PostgreSQL, or nothing."""
    import psycopg

    named = os.environ.get("TEST_DATABASE_URL", "")
    if named:
        return named
    for user in ("postgres", os.environ.get("USER") or "root"):
        try:
            with psycopg.connect(
                host="127.0.0.1", user=user, dbname="postgres", connect_timeout=3, autocommit=True
            ) as connection:
                known = "SELECT 1 FROM pg_database WHERE datname = %s"
                if not connection.execute(known, [DATABASE]).fetchone():
                    connection.execute(f'CREATE DATABASE "{DATABASE}"')
        except psycopg.OperationalError:
            continue
        return f"postgres://{user}@127.0.0.1:5432/{DATABASE}"
    return ""


def redis_url() -> str:
    """Key spaces of our own on the machine's Redis, emptied; or nothing."""
    import redis

    named = os.environ.get("TEST_BROKER_URL", "")
    if named or not answers(6379):
        return named
    for number in range(KEY_SPACE, KEY_SPACE + len(WORKERS)):
        redis.Redis(host="127.0.0.1", db=number).flushdb()
    return f"redis://127.0.0.1:6379/{KEY_SPACE}"


def amqp_url() -> str:
    """Fresh vhosts of our own on the machine's RabbitMQ, or nothing."""
    named = os.environ.get("TEST_AMQP_URL", "")
    if named or not answers(5672):
        return named
    control = shutil.which("rabbitmqctl")
    if not control:
        say("no pass on RabbitMQ: rabbitmqctl is missing, so no vhost can be made")
        return ""
    for worker in WORKERS:
        name = VHOST + worker
        subprocess.run([control, "-q", "delete_vhost", name], capture_output=True)
        for command in (
            ["add_vhost", name],
            ["set_permissions", "-p", name, "guest", ".*", ".*", ".*"],
        ):
            done = subprocess.run([control, "-q", *command], capture_output=True, text=True)
            if done.returncode:
                say(f"no pass on RabbitMQ: rabbitmqctl {command[0]}: {done.stderr.strip()[:200]}")
                return ""
    return f"amqp://guest:guest@127.0.0.1:5672/{VHOST}"


def answers(port: int) -> bool:
    """Whether somebody listens on that port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def say(text: str) -> None:
    """One line that is seen between the outputs of pytest."""
    print(f"test-services: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
