"""docs/how-it-works.md: a job passes through the files that it names, and through few others."""

import json
import re
import subprocess
import sys

import pytest

from tests.kit import PATIENCE, ROOT

MOST_MODULES, MOST_LINES = 25, 3200
PAGE = ROOT / "docs" / "how-it-works.md"
BRANCHES = "## Where the way branches"


def linked_files(text: str) -> list[str]:
    return re.findall(r"\]\(\.\./([\w/.]+)\)", text)


@pytest.mark.slow
@pytest.mark.once
def test_a_job_passes_through_the_files_of_the_page_and_through_few_others(
    process_env: dict[str, str],
) -> None:
    traced = subprocess.run(
        [sys.executable, ROOT / "scripts" / "trace_job.py", "--in-place", "--json"],
        env=process_env,
        timeout=PATIENCE,
        capture_output=True,
        text=True,
    )
    assert traced.returncode == 0, traced.stderr
    ways = json.loads(traced.stdout[traced.stdout.index("{") :])
    job = ways["a job"]
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
