from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models import Q

from tailrace.domains.builds.backends.projects import record_states
from tailrace.domains.builds.event_types.base import allow_incomplete
from tailrace.domains.builds.handlers.project_log import project_state
from tailrace.domains.builds.invariants import ProjectLogIsPruned
from tailrace.domains.builds.models import Project, ProjectLogEntry
from tailrace.domains.builds.models.project_log import BUILD_RESULTS
from tailrace.domains.builds.pages.feeds import PublicProject
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming.claim import Limits, claim
from tailrace.jobs.models import Job
from tests.builds.destinations.kit import commits

pytestmark = pytest.mark.django_db(transaction=True)
LOG = "builds.project_log"
SOURCE = "obs:main:1"


def happen(type: str, source: str = SOURCE, **payload: object) -> Recorded:
    outside = payload.pop("outside", False)
    when = payload.pop("when", None)
    new = NewEvent(f"builds.{type}", payload, source=source, occurred_at=when)
    (event,) = publish(new, outside=bool(outside))
    return event


def state(event: Recorded) -> tuple[str, str]:
    job = Job.objects.get(handler=LOG, event=event.id)
    return job.state, job.error


def test_an_event_becomes_one_entry_that_refers_to_it(run_jobs: Callable) -> None:
    commit = happen(
        "commit", project="home:alice", package="hello", user="bob", rev="2", requestid="42",
        comment="x" * 900, files="Modified:\n  hello.spec\n",
    )  # fmt: skip
    run_jobs(LOG)
    entry = ProjectLogEntry.objects.get()
    assert entry.event.source_id == commit.source_id
    assert (entry.backend, entry.project, entry.package) == ("main", "home:alice", "hello")
    assert (entry.user, entry.request, entry.type) == ("bob", "42", "builds.commit")
    assert entry.occurred_at == commit.occurred_at
    assert entry.details == {
        "comment": "x" * 249 + "…",
        "files": "Modified:\n  hello.spec\n",
        "rev": "2",
    }


def test_running_twice_doubles_nothing(run_jobs: Callable) -> None:
    happen("commit", project="p", package="q", rev="1")
    handler = registry.get(LOG)
    jobs = claim(handler, Limits(), 100)
    handler.handle_batch(jobs)
    handler.handle_batch(jobs)
    assert ProjectLogEntry.objects.count() == 1


def test_a_batch_is_one_insert(run_jobs: Callable, django_assert_max_num_queries) -> None:
    for number in range(50):
        happen("commit", project="p", package=f"q{number}", rev="1")
    handler = registry.get(LOG)
    jobs = claim(handler, Limits(), 100)
    with django_assert_max_num_queries(4):
        handler.handle_batch(jobs)
    assert ProjectLogEntry.objects.count() == 50


@pytest.mark.parametrize(
    ("payload", "user"),
    [
        ({"sender": "a", "user": "b"}, "a"),
        ({"user": "b"}, "b"),
        ({"sender": "", "user": "b"}, "b"),
        ({}, ""),
    ],
)
def test_the_user_is_the_first_that_is_named(
    run_jobs: Callable, payload: dict[str, str], user: str
) -> None:
    happen("commit", project="p", package="q", rev="1", **payload)
    run_jobs(LOG)
    assert ProjectLogEntry.objects.get().user == user


def test_a_type_without_the_flag_creates_no_entry() -> None:
    event = happen("upload", project="p", package="q")
    assert not Job.objects.filter(handler=LOG, event=event.id).exists()


def test_an_event_without_a_project_is_skipped_with_the_reason(run_jobs: Callable) -> None:
    with allow_incomplete():
        event = happen("commit", package="q", outside=True)
    run_jobs(LOG)
    assert state(event) == ("skipped", "the event names no project")


def test_a_deleted_project_is_skipped_and_not_tried_again(run_jobs: Callable) -> None:
    before = happen("commit", project="doomed", package="q", rev="1")
    happen("delete_project", project="doomed")
    after = happen("commit", project="doomed", package="q", rev="2")
    other = happen("commit", project="doomed", package="q", rev="1", source="obs:other:1")
    run_jobs(LOG)
    assert state(after) == ("skipped", "the project doomed was deleted before the event")
    assert state(before)[0] == "completed", "it happened while the project was there"
    assert state(other)[0] == "completed", "another backend's project of that name"
    assert ProjectLogEntry.objects.count() == 2


def test_an_undeleted_project_has_its_log_again(run_jobs: Callable) -> None:
    happen("delete_project", project="p")
    run_jobs(LOG)
    happen("undelete_project", project="p")
    again = happen("commit", project="p", package="q", rev="1")
    run_jobs(LOG)
    assert state(again)[0] == "completed"
    assert Project.objects.get().exists


def test_the_latest_event_on_a_project_wins_in_any_order(run_jobs: Callable) -> None:
    deleted = happen("delete_project", project="p")
    created = happen("create_project", project="p")
    record_states([project_state(created)])
    record_states([project_state(deleted)])
    assert Project.objects.get().exists
    record_states([project_state(deleted), project_state(created)])
    assert Project.objects.get().last_event == created.id


def test_old_entries_are_pruned_build_results_sooner(settings, run_jobs: Callable) -> None:
    settings.PROJECT_LOG_BUILD_DAYS, settings.PROJECT_LOG_DAYS = 1, 10
    for days in (0.5, 2, 11):
        when = datetime.now(UTC) - timedelta(days=days)
        happen("build_fail", project="p", package="q", repository="r", arch="x", when=when)
        happen("commit", project="p", package="q", rev=str(days), when=when)
    run_jobs(LOG)
    invariant = ProjectLogIsPruned()
    assert invariant.repair(invariant.find()) == 3
    entries = ProjectLogEntry.objects.order_by("id").values_list("type", "details__rev")
    assert list(entries) == [("builds.build_fail", None), ("builds.commit", "0.5"),
                          ("builds.commit", "2")]  # fmt: skip
    assert invariant.find() == []


def fill(count: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO tailrace_builds_projectlogentry (event_id, backend, project, package,
                 "user", request, type, occurred_at, details)
               SELECT n, '', 'p' || n %% 50, 'q', '', '', CASE WHEN n %% 3 = 0
                 THEN 'builds.commit' ELSE 'builds.build_fail' END,
                 now() - make_interval(secs => n), '{}' FROM generate_series(1, %s) n""",
            [count],
        )
        cursor.execute("ANALYZE tailrace_builds_projectlogentry")


def test_retention_and_feed_read_their_indexes() -> None:
    fill(30_000)
    plan = str(PublicProject("p3", frozenset({""})).commits().explain())
    assert "project_log_by_type" in plan
    assert "Sort" not in plan
    limit = datetime.now(UTC) - timedelta(hours=8)
    builds = Q(type__in=BUILD_RESULTS)
    for kind, index in ((builds, "builds"), (~builds, "others")):
        old = ProjectLogEntry.objects.filter(kind, occurred_at__lt=limit).order_by("occurred_at")
        assert f"project_log_{index}" in str(old[:100].explain())


def test_events_of_a_deleted_project_block_no_other(run_jobs):
    publish([NewEvent("builds.delete_project", {"project": "doomed"}, source=SOURCE)])
    late = [{"project": "doomed", "package": "q", "rev": str(number)} for number in range(300)]
    publish([NewEvent("builds.commit", payload, source=SOURCE) for payload in late])
    (sound,) = commits()
    run_jobs("builds.project_log")
    assert ProjectLogEntry.objects.get().event_id == sound.id
    logs = Job.objects.filter(handler="builds.project_log")
    assert not logs.filter(state__in=("pending", "running", "failed")).exists()
    assert logs.filter(state="skipped", attempt=1).count() == 300
