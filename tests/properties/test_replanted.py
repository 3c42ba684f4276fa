"""Six bugs that job systems have had, planted one at a time in a copy: these tests find each."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from tests.addresses import address
from tests.kit import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

ROOMS = ("config", "domains", "events", "jobs", "subscriptions", "tests")
FILES = ("conftest.py", "manage.py", "pyproject.toml")


@dataclass(frozen=True)
class Planted:
    """A bug: what to change, file by file, and the test that is to find it."""

    changes: tuple[tuple[str, str, str], ...]
    """(path, what stands there, what the bug has instead)."""
    found_by: str


GUARD = "AND j.claim_no = v.claim_no\n  AND j.worker = %(worker)s"
BUGS = {
    "settle by id only": Planted(
        (
            ("jobs/settle.py", GUARD, ""),
            ("jobs/settle.py", GUARD.replace("\n", "\n  "), ""),
        ),
        "tests/jobs/test_settle.py::test_a_zombie_settles_nothing",
    ),
    "the flag is cleared after the claim": Planted(
        (
            (
                "jobs/drain.py",
                "    limits = on_a_live_connection(lambda: begin(handler))\n",
                "    limits = Limits()\n",
            ),
            (
                "jobs/drain.py",
                "    jobs = claim(handler, limits)\n",
                "    jobs = claim(handler, limits)\n    begin(handler)\n",
            ),
        ),
        "tests/properties/test_races.py"
        "::test_what_is_committed_while_a_drain_claims_is_not_slept_over",
    ),
    "the attempt is counted when it is settled": Planted(
        (
            ("jobs/claim_sql.py", "attempt = j.attempt + 1, ", ""),
            ("jobs/settle.py", "attempt = j.attempt - v.uncharged", "attempt = j.attempt + 1"),
        ),
        "tests/jobs/test_rescue.py::test_a_job_that_loses_every_worker_fails_after_max_attempts",
    ),
    "rescue does not look again": Planted(
        (
            ("jobs/rescue.py", " FOR UPDATE OF j SKIP LOCKED", ""),
            (
                "jobs/rescue.py",
                "WHERE j.id = e.id AND j.state = 'running' AND j.lease_until < {clock.NOW}",
                "WHERE j.id = e.id",
            ),
        ),
        "tests/properties/test_races.py::test_a_rescue_leaves_alone_what_is_being_settled",
    ),
    "fan-out after the commit": Planted(
        (
            (
                "jobs/fan_out.py",
                "    insert_jobs(jobs)\n",
                "    __import__('django').db.transaction.on_commit(lambda: insert_jobs(jobs))\n",
            ),
        ),
        "tests/properties/test_crash_points.py"
        "::test_publish_is_whole_or_nothing_and_what_it_owes_is_done",
    ),
    "wake inside the transaction": Planted(
        (("jobs/wake.py", "transaction.on_commit(_Wake(wanted), robust=True)", "_Wake(wanted)()"),),
        "tests/jobs/test_wake.py::test_a_queue_is_woken_by_one_message_after_commit",
    ),
}


@dataclass
class Copy:
    """The code in a folder of its own, and a test database that its runs share."""

    folder: Path
    environment: dict[str, str]

    def run(self, *tests: str) -> str:
        """What pytest prints of these tests there."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "--reuse-db",
            "-p",
            "no:cacheprovider",
        ]
        done = subprocess.run(
            [*command, *tests], cwd=self.folder, env=self.environment, capture_output=True,
            text=True, timeout=120,
        )  # fmt: skip
        return done.stdout + done.stderr

    def plant(self, bug: Planted) -> None:
        """Change the copy; a change whose place is gone is an error of this file."""
        for path, stands, instead in bug.changes:
            text = (self.folder / path).read_text()
            assert text.count(stands) == 1, f"{path} has {text.count(stands)} × {stands!r}"
            (self.folder / path).write_text(text.replace(stands, instead))

    def weed(self, bug: Planted) -> None:
        """Put the files back."""
        for path, _stands, _instead in bug.changes:
            shutil.copy(ROOT / path, self.folder / path)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    for room in ROOMS:
        shutil.copytree(
            ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__", "data")
        )
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    name = f"planted_{os.getpid()}"
    settings = connection.settings_dict | {"NAME": name}
    environment = {key: value for key, value in os.environ.items() if "XDIST" not in key}
    yield Copy(
        tmp_path,
        environment | {"DATABASE_URL": address(settings), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as server:
        dropped = sql.Identifier(f"test_{name}")
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(dropped))


def test_each_bug_is_found_by_its_test_and_the_code_as_it_is_passes_them(copy: Copy) -> None:
    said = copy.run(*(bug.found_by for bug in BUGS.values()))
    assert re.search(rf"^{len(BUGS)} passed", said, re.MULTILINE), said
    for name, bug in BUGS.items():
        copy.plant(bug)
        said = copy.run(bug.found_by)
        assert re.search(r"^1 failed in", said, re.MULTILINE), f"{name} is not found: {said}"
        assert re.search(r"^E +(AssertionError|assert )", said, re.MULTILINE), f"{name}: {said}"
        copy.weed(bug)
