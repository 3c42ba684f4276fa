"""PostgreSQL crashes while a file is parsed, in its grace and while it is promoted."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.domains.timeline.imports import decisions, staging
from tests.servers.own_postgres import OwnPostgres, own_postgres
from tests.subscriptions.sample_domain import person
from tests.timeline.killable import killable
from tests.timeline.kit import (
    expected,
    gpx,
    now,
    numbers,
    rescued,
    staged_tables,
    stored,
    track,
    upload,
    visible,
)

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db(transaction=True)]
POINTS = track(2000)
FILE = gpx([*POINTS, *POINTS[:10], (None, 1.0, 2.0)])
AFTER_SOME_CHUNKS = 24
"""A statement of the parser, or of the promotion."""


@pytest.fixture
def server(tmp_path: Path, transactional_db: None) -> Iterator[OwnPostgres]:
    with own_postgres(tmp_path) as server:
        yield server


def test_an_import_is_the_same_as_without_a_crash(
    server: OwnPostgres,
    process_env: dict[str, str],
    import_folder: Path,
    run_imports: Callable[[], int],
) -> None:
    folders = {"TIMELINE_FOLDER": str(import_folder), "DATABASE_URL": server.url}
    with killable(process_env | folders) as processes:
        for moment in ("parsing", "grace", "promoting"):
            row = upload(person(moment), FILE)
            if moment == "parsing":
                run = processes.run("timeline.stage", stop_at=AFTER_SOME_CHUNKS)
            else:
                processes.run("timeline.stage")
            if moment == "promoting":
                decisions.promote_now(row.pk)
                run = processes.run("timeline.promote", stop_at=AFTER_SOME_CHUNKS)
                assert 0 < len(stored(row.user)) < len(POINTS)
            before = now(row)
            assert (before.state, before.staged > 0) == (moment, True)
            server.crash()
            assert staging.staged_count(row.pk) == 0
            if moment != "grace":
                run.go_on()
            assert (now(row).state, now(row).promote_at) == (moment, before.promote_at)
            if moment == "promoting":
                rescued()
                run_imports()
            else:
                _after_grace(row.pk, run_imports)
            assert (now(row).state, numbers(row)) == ("completed", (len(POINTS), 10, 1)), moment
            assert now(row).times_lost == (moment != "parsing")
            assert stored(row.user) == expected(POINTS)
            assert visible(row.user) == len(POINTS)
        assert staged_tables() == []


def _after_grace(id: int, run_imports: Callable[[], int]) -> None:
    """Let the parser run again, and the promotion at once."""
    rescued()
    run_imports()
    decisions.promote_now(id)
    run_imports()
