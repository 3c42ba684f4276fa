"""A project with apps called jobs, events, web, config and db adds two apps and keeps its
own settings. It runs on the wheel, in an environment with what the core needs and nothing else."""

import os
import signal
from collections.abc import Iterator

import pytest
from psycopg import sql

from tests.databases import maintenance
from tests.host.conftest import Host
from tests.kit import PATIENCE, empty_broker
from tests.servers.pgbouncer import pgbouncer

pytestmark = [pytest.mark.slow, pytest.mark.once]


@pytest.fixture(scope="module")
def host(host: Host) -> Host:
    done = host.manage("migrate")
    assert done.returncode == 0, done.stderr
    return host


@pytest.fixture(autouse=True)
def _stop_workers(host: Host) -> Iterator[None]:
    yield
    host.stop_workers()


def test_it_passes_its_checks(host: Host) -> None:
    done = host.manage("check")
    assert (done.returncode, done.stdout) == (
        0, "System check identified no issues (0 silenced).\n"
    )  # fmt: skip
    done = host.manage("makemigrations", "--check", "--dry-run")
    assert (done.returncode, done.stdout) == (0, "No changes detected\n"), done.stderr


def test_it_can_ask_what_can_move_before_a_task_has_our_class(host: Host) -> None:
    done = host.manage("tailrace", "adopt", "--no-workers")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_its_worker_serves_its_tasks_and_what_it_owes(host: Host) -> None:
    empty_broker()
    worker = host.start_worker("-c", "2", "-n", "all@%h")
    assert host.scenario("post") == [200, 200, 500]
    jobs = host.until("announced == [1, 1]")["jobs"]
    assert [(name, state) for name, state, *_ in jobs] == [("jobs.announce", "completed")] * 2
    assert host.scenario("from_async_view") == 200
    host.until("len(jobs) == 3")
    statuses, lines = host.scenario("metrics")
    assert statuses == [401, 401, 401, 200]
    assert any("tick" in line for line in lines), "monitoring sees whether upkeep ticks"
    [served] = host.scenario("queues").values()
    assert served == ["board", "jobs.announce", "jobs.wait"]
    host.start_worker("-c", "1", "-n", "slow@%h", "-Q", "slow")
    assert host.scenario("tasks") == [3, [1, 2]]
    # 600 s for a call, 5 for the rest of its drain, 60 to end; the project's own limit is 20.
    assert host.scenario("limits") == ["600/m", 0, 665]
    assert host.scenario("prepared_statements") == [["SELECT 1"]]
    done = host.manage("tailrace", "verdict")
    assert (done.returncode, done.stdout) == (0, "Healthy\n"), done.stderr
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE) == 0


def test_jobs_of_a_killed_worker_are_done_again_by_another_of_its_name(host: Host) -> None:
    killed = host.start_worker("-c", "1", "-n", "one@%h", "-Q", "jobs.wait")
    host.scenario("wait", "60")
    host.until("jobs[-1][1] == 'running'")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(PATIENCE)
    host.start_worker("-c", "1", "-n", "one@%h", "-Q", "jobs.wait")
    host.until("jobs[-1][1:3] == ('running', 2)")


@pytest.mark.long
def test_it_works_behind_a_pooler(host: Host) -> None:
    """PgBouncer shares sessions between transactions, so nothing may rely on a session."""
    ours = host.environment
    with maintenance() as session:
        session.execute(
            sql.SQL("ALTER DATABASE {} SET search_path = board").format(
                sql.Identifier(ours["DB_NAME"])
            )
        )
    names = {"NAME": "DB_NAME", "USER": "DB_USER", "PASSWORD": "DB_PASSWORD", "HOST": "DB_HOST"}
    database = {name: ours[variable] for name, variable in names.items()}
    with pgbouncer(database | {"PORT": ours["DB_PORT"]}, 3) as pooler:
        behind = {"DB_HOST": "127.0.0.1", "DB_PORT": str(pooler.port), "DB_POOLED": "yes"}
        host.environment = ours | behind | {"DB_USER": pooler.user}
        try:
            before = len(host.scenario("state")["announced"])
            host.start_worker("-c", "2", "-n", "pooled@%h")
            assert host.scenario("post") == [200, 200, 500]
            host.until(f"announced[{before}:] == [1, 1]")
        finally:
            host.stop_workers()
            host.environment = ours


def test_events_and_jobs_are_in_the_database_of_its_models(host: Host) -> None:
    """Its database `default` is a SQLite that knows none of them."""
    there = host.environment
    host.environment = there | {"DB_ELSEWHERE": "yes"}
    try:
        done = host.manage("check")
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        done = host.manage("migrate", "--database", "board")
        assert done.returncode == 0, done.stderr
        before = len(host.scenario("state")["announced"])
        host.start_worker("-c", "2", "-n", "elsewhere@%h")
        assert host.scenario("post") == [200, 200, 500]
        host.until(f"announced[{before}:] == [1, 1]")
        done = host.manage("tailrace", "verdict")
        assert not done.stderr
        assert "elsewhere@" not in done.stdout  # it may name workers that other tests have killed
        done = host.manage("tailrace", "fsck")
        assert done.returncode == 0, done.stdout
    finally:
        host.stop_workers()
        host.environment = there


def test_its_own_tests_run_jobs(host: Host) -> None:
    done = host.manage("test", "jobs")
    assert done.returncode == 0, done.stderr
    assert "Ran 12 tests" in done.stderr


def test_a_wrong_configuration_is_named_with_the_line_to_write(host: Host) -> None:
    shown = host.scenario("wrong")
    assert shown.pop("right") == []
    assert {name: [text.partition(":")[0] for text in texts] for name, texts in shown.items()} == {
        "TAILRACE = ['JOBS_TIME_LIMIT']": ["tailrace_jobs.E020"],
        "TAILRACE = {'JOBS_TIME_LIMIT': 'soon'}": ["tailrace_jobs.E021"],
        "TAILRACE = {'JOB_TIME_LIMIT': 5}": ["tailrace_jobs.E022"],
        "USE_TZ = False": ["tailrace_jobs.E023"],
        "CELERY_BROKER_URL = memory://": ["tailrace_jobs.E026"],
        "CELERY_ACCEPT_CONTENT = ['pickle']": ["tailrace_jobs.E027"],
        "CELERY_TASK_ALWAYS_EAGER = True": ["tailrace_jobs.W028"],
        "HEALTH_TOKEN = short, with --deploy": ["tailrace.E119"],
    }
    assert "did you mean 'JOBS_TIME_LIMIT'?" in shown["TAILRACE = {'JOB_TIME_LIMIT': 5}"][0]
