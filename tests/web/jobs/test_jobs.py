"""GET /api/jobs and /api/jobs/{id}: what is listed, shown and masked, and waiting for a job."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.db.query import database_now
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.platform.inspection.search import find
from tailrace.jobs.runtime.states import REPLAYABLE, State
from tailrace.web.api.jobs import filters, schemas
from tailrace.web.api.requests.waiting import WaitingPlaces, waiting
from tests.jobs import operators
from tests.kit import at_once, wait_until
from tests.sandbox.handlers import Requested
from tests.web.jobs.requesting import operator, send
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return operator()


def make(state: str = "completed", handler: str = Requested.name, **fields: object) -> Job:
    return Job.objects.create(handler=handler, state=state, **fields)


def ids(jobs: list[dict]) -> list[int]:
    return [job["id"] for job in jobs]


def test_jobs_are_listed_newest_first_page_by_page(ann: Program) -> None:
    jobs = [make().pk for _ in range(5)]
    assert ids(ann.all("/jobs", limit=2)) == jobs[::-1]


def test_jobs_are_listed_by_handler_state_event_and_schedule(ann: Program) -> None:
    failed = make("failed", schedule_id=7)
    done = make("completed", "test.other", event_id=9)
    assert ids(ann.all("/jobs", state="failed")) == [failed.pk]
    assert ids(ann.all("/jobs", handler="test.other")) == [done.pk]
    assert ids(ann.all("/jobs", event=9)) == [done.pk]
    assert ids(ann.all("/jobs", schedule=7)) == [failed.pk]
    assert ann.all("/jobs", schedule=7, state="completed") == []
    (fault,) = problem(ann.get("/jobs", state="done"), 422, "invalid")["errors"]
    assert fault["parameter"] == "state"


def test_jobs_are_searched_as_in_the_admin(ann: Program) -> None:
    failed = make("failed", lane="l", routing_key="k")
    make("completed")
    for text in ("state:failed", "lane:l", "key:k", str(failed.pk), "key:k since:1h"):
        assert ids(ann.all("/jobs", search=text)) == [failed.pk], text
    assert ids(ann.all("/jobs", search=f"queue:{Requested.name}", state="failed")) == [failed.pk]
    assert ann.all("/jobs", failure=7) == []
    for text in ("since:soon", "queue:nothing", 'error:"x'):
        (fault,) = problem(ann.get("/jobs", search=text), 422, "invalid")["errors"]
        assert fault["parameter"] == "search"


def test_connected_jobs_are_listed(ann: Program) -> None:
    """Up to the first job and down to the last ones, whatever their states."""
    first = make()
    left, right = make("failed", after=first), make("waiting", after=first)
    last = make("cancelled", "test.other", after=left)
    other = make()
    connected = [last.pk, right.pk, left.pk, first.pk]
    assert [ids(ann.all("/jobs", connected_with=id)) for id in connected] == [connected] * 4
    assert ids(ann.all("/jobs", connected_with=left.pk, limit=1)) == connected
    assert ids(ann.all("/jobs", connected_with=left.pk, state="cancelled")) == [last.pk]
    assert ids(ann.all("/jobs", connected_with=other.pk)) == [other.pk]
    assert ids(ann.all("/jobs", connected_with=other.pk + 1)) == []


def test_a_filter_without_an_index_reads_a_window_of_jobs(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(filters, "WINDOW", 3)
    first, *_others = make(handler="test.other"), *(make() for _ in range(7))
    page = ann.get("/jobs", handler="test.other").json()
    assert page["items"] == []
    assert page["next"] is not None
    assert ids(ann.all("/jobs", handler="test.other")) == [first.pk]
    Job.objects.filter(pk__lte=first.pk + 1).update(created_at=database_now() - timedelta(hours=3))
    monkeypatch.setattr(find, "MARGIN", timedelta(0))
    page = ann.get("/jobs", search="queue:test.other until:1h").json()
    assert (ids(page["items"]), page["next"], page["left_out"]) == ([first.pk], None, "")


def test_a_job_is_shown_with_attempts_progress_and_times(ann: Program, run_jobs, scripted) -> None:
    def work(job):
        job.progress(3, 10, "pages")
        raise RuntimeError("out of paper")

    scripted(Requested.name, work)
    id = send(ann).json()["id"]
    run_jobs(Requested.name)
    job = ann.get(f"/jobs/{id}").json()
    assert job["payload"]["title"] == "March"
    assert job["progress"] == {"done": 3, "total": 10, "note": "pages"}
    assert job["state"] == "pending"
    (attempt,) = job["attempts"]
    assert (attempt["outcome"], attempt["message"]) == ("retried", "out of paper")
    assert [span["what"] for span in job["time_spent"]] == [
        "wait → claim",
        "claim 1 → call",
        "call → end",
        "end → settle",
    ]
    problem(ann.get(f"/jobs/{id + 1}"), 404)


def test_payload_result_and_errors_need_their_permission() -> None:
    bob = program("bob", "jobs:read", may=("tailrace_jobs.view_job",))
    job = make(
        "failed", payload={"title": "treasure"}, result="treasure", error="treasure is gone",
        progress_done=1, progress_note="treasure",
    )  # fmt: skip
    Attempt.objects.create(job=job, claim_no=1, outcome="failed", message="treasure is gone")
    shown = bob.get(f"/jobs/{job.pk}")
    assert shown.status_code == 200
    assert shown.json()["payload"] is shown.json()["result"] is None
    for answer in (shown, bob.get("/jobs")):
        assert "not shown: needs the permission" in answer.content.decode()
        assert "treasure" not in answer.content.decode()


def test_a_scope_does_not_replace_the_permission() -> None:
    make()
    bob = program("bob", "jobs:read")
    problem(bob.get("/jobs"), 403, "permission-missing")
    problem(operator("cat", "jobs:write").get("/jobs"), 403, "scope-missing")


def test_without_a_place_the_answer_comes_at_once(ann: Program, monkeypatch) -> None:
    job = make("pending")
    monkeypatch.setattr(waiting, "places", 0)
    assert ann.get(f"/jobs/{job.pk}", wait=20).json()["state"] == "pending"


@pytest.mark.django_db(transaction=True)
def test_an_answer_waits_until_the_job_is_finished() -> None:
    """Its progress is no end of the waiting, if the request names no version."""
    ann = operator()
    id = send(ann).json()["id"]

    def work(number: int) -> dict:
        if number == 0:
            return ann.get(f"/jobs/{id}", wait=20).json()
        wait_until(lambda: waiting.taken, what="the request waits")
        Job.objects.filter(pk=id).update(progress_done=1, progress_total=2)
        return {"jobs": drain(Requested.name)}

    shown, _ = at_once(2, work)
    assert (shown["state"], shown["result"]) == ("completed", {"title": "March"})
    assert waiting.taken == 0, "its place is free again"


@pytest.mark.django_db(transaction=True)
def test_a_waiting_request_hears_of_the_next_change(run_jobs) -> None:
    ann = operator()
    id = send(ann).json()["id"]
    version = ann.get(f"/jobs/{id}").json()["version"]

    def work(number: int) -> dict:
        if number == 0:
            return ann.get(f"/jobs/{id}", wait=20, after=version).json()
        wait_until(lambda: waiting.taken, what="the request waits")
        return {"changed": Job.objects.filter(pk=id).update(progress_done=1, progress_total=2)}

    shown, _ = at_once(2, work)
    assert shown["progress"]["done"] == 1
    assert shown["version"] != version
    assert ann.get(f"/jobs/{id}", wait=20, after=version).json()["version"] == shown["version"]
    assert waiting.taken == 0, "its place is free again"


def test_one_user_does_not_take_all_places() -> None:
    places = WaitingPlaces(4)
    with places.place(1) as first, places.place(1) as second, places.place(1) as third:
        assert (first, second, third) == (True, True, False)
        with places.place(2) as other, places.place(3) as last, places.place(4) as none_left:
            assert (other, last, none_left) == (True, True, False)
    assert places.taken == 0


def test_the_names_of_states_are_those_of_the_engine() -> None:
    assert set(schemas.StateName.__args__) == set(State.values)
    assert set(schemas.Replayable.__args__) == set(REPLAYABLE)


def test_no_list_reads_the_table_from_end_to_end(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(filters, "WINDOW", 100)
    operators.fill_tables(5000)
    flow = make("waiting", after=make()).pk
    for query in (
        "", "?limit=200", "?event=77", "?state=failed", "?handler=operators.1",
        "?handler=operators.1&state=failed", "?handler=operators.1&state=pending", "?schedule=3",
        f"?connected_with={flow}", "?flow=7",
    ):  # fmt: skip
        with CaptureQueriesContext(connection) as captured:
            assert ann.get(f"/jobs{query}").status_code == 200
        statements = [each["sql"] for each in captured.captured_queries]
        assert operators.sequential_scans(statements, "tailrace_jobs_job") == [], query
        assert len(statements) < 15


def test_handlers_are_listed_with_the_schema_of_their_payload(ann: Program) -> None:
    by_name = {handler["name"]: handler for handler in ann.get("/handlers").json()}
    requested = by_name[Requested.name]
    assert requested["payload_schema"]["properties"]["pages"]["maximum"] == 100
    assert requested["may_request"]
    assert by_name["test.log"]["payload_schema"] is None
    assert not by_name["test.log"]["may_request"]


def test_who_may_not_see_queues_sees_the_handlers_for_requests() -> None:
    assert program("cat", "jobs:read").get("/handlers").json() == []
    bob = program("bob", "jobs:read", may=("tailrace_jobs.add_job",))
    names = {handler["name"] for handler in bob.get("/handlers").json()}
    assert Requested.name in names
    assert "test.log" not in names
