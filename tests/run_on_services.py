"""Run tests on this machine's PostgreSQL, Redis and RabbitMQ, if they are running. Usage:
run_on_services.py [pytest arguments]. Each pass has its own databases, key spaces and vhosts.

First with Redis as the broker, and RabbitMQ for the bus: if `make test` has recorded the SQL
statements of each test, only a selection that sends all of them. Then the tests that use the
broker, on RabbitMQ. Other slow tests, and tests that do not depend on services, run only in `make
test`. TEST_DATABASE_URL, TEST_BROKER_URL and TEST_AMQP_URL name services on other machines.
"""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

DATABASE = "tailrace_services"
KEY_SPACE = 8
VHOST = "tailrace_services"
MARKERS = "not long and not once and not slow"
STATEMENTS = Path("var/test-statements")
"""The file in which `make test` records the statements that each test sends."""
WORKERS = ("", *(f"_gw{number}" for number in range(7)))
"""pytest and its processes, which `-n` may limit further: Redis has eight key spaces from 8 on."""
PATIENCE = 30
"""Time limit of a rabbitmqctl command in seconds, so that it cannot hang the tests."""


def main(arguments: list[str]) -> int:
    """Run the passes; return the exit status of the first that fails, or 0."""
    database, redis, amqp = postgres_url(), redis_url(), amqp_url()
    if not database or not redis:
        print_line("skipped: PostgreSQL and Redis are not both running on this machine")
        return 0
    common = {"DATABASE_URL": database, "TEST_AMQP_URL": amqp}
    choice = {}
    if STATEMENTS.exists():
        choice = {"TESTS_CHOOSE_BY_STATEMENTS": str(STATEMENTS.resolve())}
        print_line("a selection of tests that sends all statements that `make test` recorded")
    print_line(f"pass on PostgreSQL and Redis{' and RabbitMQ' if amqp else ''} of this machine")
    status = suite({**common, **choice, "BROKER_URL": redis}, ["-m", MARKERS, *arguments])
    if status or not amqp:
        return status
    print_line("pass with RabbitMQ as the broker")
    status = suite(
        {**common, "BROKER_URL": amqp}, ["-m", "broker and not once and not long", *arguments]
    )
    if control := shutil.which("rabbitmqctl"):
        for worker in WORKERS:  # the queues of a vhost keep file handles open
            rabbitmqctl(control, "delete_vhost", VHOST + worker)
    return status


def suite(variables: dict[str, str], arguments: list[str]) -> int:
    set_variables = {key: value for key, value in variables.items() if value}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], env={**os.environ, **set_variables}
    ).returncode


def postgres_url() -> str:
    """Return the URL of a new database on the machine's PostgreSQL, or an empty string."""
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
    """Return the URL of an emptied key space on the machine's Redis, or an empty string."""
    import redis

    named = os.environ.get("TEST_BROKER_URL", "")
    if named or not answers(6379):
        return named
    for number in range(KEY_SPACE, KEY_SPACE + len(WORKERS)):
        redis.Redis(host="127.0.0.1", db=number).flushdb()
    return f"redis://127.0.0.1:6379/{KEY_SPACE}"


def amqp_url() -> str:
    """Return the URL of a new vhost on the machine's RabbitMQ, or an empty string."""
    named = os.environ.get("TEST_AMQP_URL", "")
    if named or not answers(5672):
        return named
    control = shutil.which("rabbitmqctl")
    if not control:
        print_line("no pass on RabbitMQ: rabbitmqctl is missing, so no vhost can be created")
        return ""
    for worker in WORKERS:
        name = VHOST + worker
        rabbitmqctl(control, "delete_vhost", name)
        for command in (
            ["add_vhost", name],
            ["set_permissions", "-p", name, "guest", ".*", ".*", ".*"],
        ):
            if error := rabbitmqctl(control, *command):
                print_line(f"no pass on RabbitMQ: rabbitmqctl {command[0]}: {error}")
                return ""
    return f"amqp://guest:guest@127.0.0.1:5672/{VHOST}"


def rabbitmqctl(control: str, *command: str) -> str:
    """Run a rabbitmqctl command; return its error message, or an empty string."""
    try:
        result = subprocess.run(
            [control, "-q", *command], capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {PATIENCE} s"
    return result.stderr.strip()[:200] if result.returncode else ""


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def print_line(text: str) -> None:
    print(f"test-services: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
