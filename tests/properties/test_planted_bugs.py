"""Bugs that job systems have had, planted one at a time in a copy: a test finds each.

`make test-long` plants two of them, `make planted-bugs` all.
"""

import ast
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
from tests.config.copied_project import copy_project, copy_tests
from tests.kit import ROOT

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True), pytest.mark.slow]


@dataclass(frozen=True)
class Change:
    """Text to replace in one function, class or constant of a module; in the whole file if `name`
    is empty."""

    path: str
    name: str
    old: str
    new: str

    def apply(self, folder: Path) -> None:
        """Change the copy in `folder`; the text must occur there exactly once."""
        file = folder / self.path
        lines = file.read_text().splitlines(keepends=True)
        start, end = self._lines("".join(lines))
        source = "".join(lines[start:end])
        count = source.count(self.old)
        assert count == 1, f"{self.path}: {self.name} has {count} × {self.old!r}"
        lines[start:end] = [source.replace(self.old, self.new)]
        file.write_text("".join(lines))

    def _lines(self, source: str) -> tuple[int, int]:
        if not self.name:
            return 0, len(source.splitlines())
        for node in ast.parse(source).body:
            names = [getattr(node, "name", None)]
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if self.name in names:
                assert node.end_lineno
                return node.lineno - 1, node.end_lineno
        raise AssertionError(f"{self.path} has no {self.name}")


@dataclass(frozen=True)
class Bug:
    """The changes that make a bug, and the test that is to find it."""

    changes: tuple[Change, ...]
    found_by: str


DEPENDENTS = "jobs/engine/waking/dependents.py"
GUARD = "AND {_OWN_CLAIM}"
BUGS = {
    "settle by id only": Bug(
        (
            Change("jobs/engine/settling/settle_sql.py", "finish_sql", GUARD, ""),
            Change("jobs/engine/settling/settle_sql.py", "SETTLE", GUARD, ""),
        ),
        "tests/jobs/engine/test_zombies.py::test_a_zombie_settles_nothing",
    ),
    "the flag is cleared after the claim": Bug(
        (
            Change(
                "jobs/engine/drain.py",
                "_begin",
                "return begin(handler), None",
                "return Limits(), None",
            ),
            Change(
                "jobs/engine/drain.py",
                "one_batch",
                "jobs = claim(handler, limits, count)\n",
                "jobs = claim(handler, limits, count)\n        begin(handler)\n",
            ),
        ),
        "tests/properties/test_races.py::test_a_job_committed_during_a_claim_is_not_missed",
    ),
    "a claim that begins a drain ignores the limits of the queue": Bug(
        (
            Change(
                "jobs/engine/claiming/kinds.py",
                "BEGIN_PLAIN",
                "AND q.max_running IS NULL AND q.rate_limit IS NULL",
                "",
            ),
        ),
        "tests/jobs/engine/test_drain.py"
        "::test_a_drain_of_a_quick_handler_keeps_the_limits_of_its_queue[running]",
    ),
    "the attempt is counted when it is settled": Bug(
        (
            Change("jobs/engine/claiming/take.sql", "", "attempt = j.attempt + 1, ", ""),
            Change(
                "jobs/engine/settling/settle_sql.py",
                "SETTLE",
                "attempt = j.attempt - (NOT v.charged)::int",
                "attempt = j.attempt + 1",
            ),
        ),
        "tests/jobs/maintenance/test_rescue.py"
        "::test_a_job_that_loses_every_worker_fails_after_max_attempts",
    ),
    "rescue does not check the lease again": Bug(
        (
            Change(
                "jobs/engine/maintenance/ticking/rescue.py",
                "_RESCUE",
                " FOR UPDATE OF j SKIP LOCKED",
                "",
            ),
            Change(
                "jobs/engine/maintenance/ticking/rescue.py",
                "_RESCUE",
                "WHERE j.id = e.id AND j.state = 'running'\n"
                "    AND (j.lease_until < {clock.NOW} OR starts_with(j.worker, %(process)s))",
                "WHERE j.id = e.id",
            ),
        ),
        "tests/properties/test_races.py::test_a_rescue_leaves_alone_what_is_being_renewed",
    ),
    "fan-out after the commit": Bug(
        (
            Change(
                "jobs/engine/inserting/fan_out.py",
                "fan_out",
                "insert_jobs(jobs, of_new_events=True)\n",
                "__import__('django').db.transaction.on_commit("
                "lambda: insert_jobs(jobs, of_new_events=True))\n",
            ),
        ),
        "tests/properties/test_crash_points.py"
        "::test_publish_is_whole_or_nothing_and_what_it_owes_is_done",
    ),
    "a merge does not lock": Bug(
        (Change("jobs/engine/inserting/insert_sql.py", "INSERT_WITH_KEY", " FOR SHARE", ""),),
        "tests/jobs/engine/test_merge.py::test_what_a_merged_publisher_changed_is_worked_on",
    ),
    "wake inside the transaction": Bug(
        (
            Change(
                "jobs/engine/waking/wake.py",
                "on_commit",
                "connection.on_commit(_Wake(queues), robust=True)",
                "_Wake(queues)()",
            ),
        ),
        "tests/jobs/engine/test_wake.py::test_a_queue_is_woken_by_one_message_after_commit",
    ),
    "a decision ignores the other parents": Bug(
        (Change(DEPENDENTS, "_DECIDE", "coalesce(next.parent_id, all_of.unfinished)",
                "NULL::bigint"),),
        "tests/jobs/flows/test_races.py"
        "::test_two_parents_that_end_in_transactions_open_at_once",
    ),
    "a parent is not marked when a job waits for it next": Bug(
        (Change(DEPENDENTS, "release_on_commit", "_mark", "list"),),
        "tests/jobs/flows/test_races.py"
        "::test_a_parent_that_ends_while_the_other_one_decides[the older ends last]",
    ),
    "a job is skipped when its parent failed": Bug(
        (Change(DEPENDENTS, "_DECIDE", "broken IS NOT NULL THEN 'cancelled'",
                "broken IS NOT NULL THEN 'skipped'"),),
        "tests/jobs/flows/test_faults.py"
        "::test_a_cancelled_parent_cancels_and_a_retry_of_the_flow_runs_all",
    ),
    "the jobs of a paused flow are decided": Bug(
        (Change(DEPENDENTS, "_DECIDE", " AND NOT {paused}", ""),),
        "tests/jobs/flows/test_faults.py"
        "::test_a_paused_flow_decides_nothing_until_it_is_resumed",
    ),
    "jobs of a flow are held back after it is resumed": Bug(
        (Change("jobs/flows/hold.py", "_HOLD", " AND paused_at IS NOT NULL\n"
                "  FOR SHARE SKIP LOCKED", ""),),
        "tests/jobs/flows/test_races.py"
        "::test_a_job_is_not_held_back_when_its_flow_is_resumed_meanwhile",
    ),
    "a parent that was replayed is not looked for again": Bug(
        (Change(DEPENDENTS, "_DECIDE", "coalesce(next.parent_id, all_of.unfinished)",
                "next.parent_id"),),
        "tests/jobs/flows/test_faults.py"
        "::test_a_child_that_was_passed_waits_for_a_replayed_parent",
    ),
}  # fmt: skip
SHORT_FORM = ("settle by id only", "a merge does not lock")
PLANTED = BUGS if os.environ.get("PLANTED_BUGS") == "all" else {n: BUGS[n] for n in SHORT_FORM}


@dataclass
class Copy:
    """A copy of the code, and a test database that its runs share."""

    folder: Path
    environment: dict[str, str]

    def run(self, *tests: str) -> str:
        """Run these tests in the copy; return what pytest prints."""
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
            text=True, timeout=300,
        )  # fmt: skip
        return done.stdout + done.stderr

    def plant(self, bug: Bug) -> None:
        for change in bug.changes:
            change.apply(self.folder)

    def restore(self, bug: Bug) -> None:
        for change in bug.changes:
            shutil.copy(ROOT / change.path, self.folder / change.path)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    copy_project(tmp_path)
    copy_tests(tmp_path)
    name = f"planted_{os.getpid()}"
    settings = connection.settings_dict | {"NAME": name}
    environment = {key: value for key, value in os.environ.items() if "XDIST" not in key}
    own = {
        "DATABASE_URL": address(settings),
        "TAILRACE_VAR": str(tmp_path / "var"),
        "PYTHONPATH": str(tmp_path / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield Copy(tmp_path, environment | own)
        finally:
            for database in (f"test_{name}", name):
                server.execute(
                    sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(
                        sql.Identifier(database)
                    )
                )


@pytest.mark.long
def test_each_planted_bug_is_found_by_its_test(copy: Copy) -> None:
    output = copy.run(*(bug.found_by for bug in PLANTED.values()))
    assert re.search(rf"^{len(PLANTED)} passed", output, re.MULTILINE), output
    for name, bug in PLANTED.items():
        copy.plant(bug)
        output = copy.run(bug.found_by)
        assert re.search(r"^1 failed(?:, \d+ warnings?)? in", output, re.MULTILINE), (
            f"{name} is not found: {output}"
        )
        assert re.search(r"^E +(AssertionError|assert )", output, re.MULTILINE), f"{name}: {output}"
        copy.restore(bug)
