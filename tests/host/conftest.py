"""A project of somebody else, with the wheel in an environment of its own."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from tests import forks
from tests.databases import maintenance
from tests.kit import PATIENCE, wait_until
from tests.servers.installed_wheel import Environment, Installed, wheel_of

PYTHON = "TESTS_HOST_PYTHON"
"""Variable: a Python that has the wheel installed, to use instead (tests/run_on_versions.py)."""
PROJECT = Path(__file__).parent / "project"


class Host:
    """An environment with the wheel, a folder for a project, and a database of its own."""

    def __init__(self, run: pytest.TempPathFactory, environment: dict[str, str]) -> None:
        folder = run.mktemp("host")
        if python := os.environ.get(PYTHON):
            self.installed: Environment = Environment(Path(python), folder / "work")
        else:
            self.installed = Installed(folder, wheel_of(run))
        self.work = self.installed.work
        self.environment = environment
        self.workers: list[subprocess.Popen[bytes]] = []

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.installed.run(*words, **(self.environment | variables))

    def manage(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run("manage.py", *words, **variables)

    def scenario(self, *words: str, **variables: str) -> Any:
        """Return what a step of scenario.py prints."""
        done = self.run("scenario.py", *words, **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def until(self, condition: str) -> Any:
        """Return the project's state once this is true of it."""
        return self.scenario("until", condition, str(PATIENCE))

    def start_worker(self, *words: str, app: str = "config") -> subprocess.Popen[bytes]:
        """Start a worker of the project's own, as it is started without Tailrace."""
        log = self.work / f"worker{len(self.workers)}.log"
        process = forks.Fork(
            ["-m", "celery", "-A", app, "worker", "-l", "info", *words],
            cwd=self.work, env=self.installed.variables() | self.environment,
            server=self.installed.server,
            stdout=log.open("wb"), stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self.workers.append(process)
        wait_until(
            lambda: process.poll() is not None or b" ready." in log.read_bytes(),
            what=f"{log} says that it is ready",
        )
        assert process.poll() is None, log.read_text()
        return process

    def stop_workers(self) -> None:
        for process in self.workers:
            if process.poll() is None:
                os.killpg(process.pid, 9)
            process.wait(PATIENCE)
        self.workers.clear()


@pytest.fixture(scope="module")
def empty_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    name, results = f"host_{uuid4().hex[:12]}", tmp_path_factory.mktemp("results")
    with maintenance() as session:
        environment = {
            "DB_NAME": name, "DB_USER": session.info.user, "DB_PASSWORD": session.info.password,
            "DB_HOST": session.info.host, "DB_PORT": str(session.info.port),
            "BROKER": os.environ["BROKER_URL"], "RESULTS": f"file://{results}",
        }  # fmt: skip
        session.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        with psycopg.connect(session.info.dsn, password=session.info.password, dbname=name) as own:
            own.execute("CREATE SCHEMA board")
        project = Host(tmp_path_factory, environment)
        try:
            yield project
        finally:
            project.stop_workers()
            project.installed.end()
            session.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def host(empty_host: Host) -> Host:
    """The project of the folder beside this file."""
    shutil.copytree(
        PROJECT, empty_host.work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    return empty_host
