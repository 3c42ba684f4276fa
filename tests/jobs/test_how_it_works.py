"""docs/explanation/how-it-works.md: a job passes through the files that it names, and few more."""

import json
import re
import subprocess
import sys

import pytest

from tests.kit import PATIENCE, ROOT

MOST_MODULES, MOST_LINES = 25, 3200
TRIES = 3
"""Traces: where the machine is busy, a job is renewed or given back, which are modules more."""
PAGE = ROOT / "docs" / "explanation" / "how-it-works.md"
BRANCHES = "## Where the way branches"


def linked_files(text: str) -> list[str]:
    return re.findall(r"\]\(\.\./\.\./([\w/.]+)\)", text)


def traced(env: dict[str, str]) -> dict[str, dict[str, int]]:
    """Return the modules on each way, with their numbers of lines."""
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "trace_job.py", "--in-place", "--json"],
        env=env, timeout=PATIENCE, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ways: dict[str, dict[str, int]] = json.loads(done.stdout[done.stdout.index("{") :])
    return ways


@pytest.mark.slow
@pytest.mark.once
def test_a_job_passes_through_the_files_of_the_page_and_through_few_others(
    process_env: dict[str, str],
) -> None:
    for _try in range(TRIES):
        ways = traced(process_env)
        job = ways["a job"]
        if len(job) <= MOST_MODULES:
            break
    assert len(job) <= MOST_MODULES, list(job)
    assert sum(job.values()) <= MOST_LINES, job
    way, branches = PAGE.read_text().split(BRANCHES)
    assert linked_files(way)
    assert set(linked_files(way)) <= {*job, *ways["an event"]}
    assert not set(linked_files(branches)) & set(job) - {"jobs/runtime/shutdown.py"}


def test_the_page_links_to_files_that_exist() -> None:
    files = linked_files(PAGE.read_text())
    assert files
    assert [file for file in files if not (ROOT / file).is_file()] == []
