"""A PostgreSQL that is away, too old or not migrated is one line, without password or traceback."""

import os
import re
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from tests import forks
from tests.addresses import address
from tests.kit import PATIENCE, ROOT, wait_until
from tests.servers.old_postgres import old_postgres
from tests.servers.platform import free_ports
from tests.servers.web import closed_port

pytestmark = pytest.mark.once

WAY_OUT = "set DATABASE_URL to another server (empty: an embedded one)"


def environment(port: int, **variables: str) -> dict[str, str]:
    url = f"postgres://me:secret@127.0.0.1:{port}/shop"
    own = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tailrace.config.settings"}
    return {**os.environ, **own, **variables}


def away(port: int) -> str:
    return (
        f"tailrace: PostgreSQL at 127.0.0.1:{port}, database 'shop', cannot be used: Connection"
        f" refused; start it, or {WAY_OUT}"
    )


def too_old(port: int) -> str:
    return (
        f"tailrace: PostgreSQL at 127.0.0.1:{port}, database 'shop', has version 14, but Tailrace"
        f" needs 15 or newer; upgrade it, or {WAY_OUT}"
    )


def manage(port: int) -> subprocess.CompletedProcess[str]:
    return forks.run(
        ["manage.py", "queues"],
        cwd=ROOT, env=environment(port), capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


def test_a_command_ends_with_one_line() -> None:
    port = closed_port()
    done = manage(port)
    assert (done.returncode, done.stderr.splitlines()) == (2, [away(port)])
    with old_postgres("14.9") as port:
        done = manage(port)
    assert (done.returncode, done.stderr.splitlines()) == (2, [too_old(port)])


@pytest.mark.parametrize("name", ["worker", "beat"])
def test_a_worker_or_beat_waits_for_the_server_and_ends_if_it_is_too_old(
    tmp_path: Path, name: str
) -> None:
    """Unknown variables are named, too."""
    (port,), log = free_ports(1), tmp_path / "log"
    with log.open("w") as file:
        process = forks.Fork(
            ["-m", "celery", "-A", "tailrace.config", name],
            cwd=ROOT, env=environment(port, WEB_PROT="1"), stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        wait_until(lambda: log.read_text().count("\n") == 2)
        with old_postgres("14.9", port):
            assert process.wait(PATIENCE) == 2
    finally:
        process.kill()
        process.wait()
    assert log.read_text().splitlines() == [
        "tailrace: WEB_PROT: no such setting; did you mean 'WEB_PORT'?",
        f"{away(port)}. Waiting for the server",
        too_old(port),
    ]


def test_a_web_server_runs_without_the_database(tmp_path: Path) -> None:
    port, log = closed_port(), tmp_path / "log"
    words = ("gunicorn", "--config", "config/servers/gunicorn.py", "tailrace.config.servers.wsgi")
    variables = environment(port, WEB_PORT=str(free_ports(1)[0]))
    with log.open("w") as file:
        process = forks.Fork(
            ["-m", *words],
            cwd=ROOT, env=variables, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        wait_until(lambda: "Listening at" in log.read_text())
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
    lines = log.read_text().splitlines()
    assert lines[0] == f"{away(port)}. Waiting for the server"
    assert not [line for line in lines if "Traceback" in line]


@pytest.mark.django_db
def test_a_database_without_our_tables_is_one_line_with_the_command_to_run() -> None:
    settings = connection.settings_dict | {"NAME": f"empty_{os.getpid()}"}
    name = sql.Identifier(settings["NAME"])
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            done = forks.run(
                ["manage.py", "queues"],
                cwd=ROOT, env=environment(1, DATABASE_URL=address(settings)),
                capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
    assert done.returncode == 2
    assert re.fullmatch(
        r"tailrace: \d+ migrations are not applied \(relation \"tailrace_jobs_queue\" does not"
        r" exist\); run `tailrace migrate`\n",
        done.stderr,
    ), done.stderr
