"""Chains, groups, graphs, callbacks: which jobs run, and what they are given."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.flows import InvalidJob, NewFlow, graph
from tailrace.jobs.handler import ClaimedJob, parents
from tailrace.jobs.models import Dependency, Flow, Job
from tailrace.jobs.operations.cancel import cancel
from tests.jobs.flows.kit import FAILS, states
from tests.sandbox.handlers import Once, Other, Working

pytestmark = pytest.mark.django_db


def test_a_chain_runs_in_order(run_jobs, scripted) -> None:
    order: list[str] = []
    scripted("test.work", lambda job: order.append(job.payload.note))
    flow = NewFlow("chain")
    flow.chain([(Working, {"note": note}) for note in "abc"])
    flow.enqueue()
    assert list(states(flow).values()) == ["pending", "waiting", "waiting"]
    run_jobs()
    assert order == ["a", "b", "c"]
    assert not Dependency.objects.exists()  # one parent needs no row


def test_a_callback_runs_when_all_of_a_group_are_completed(run_jobs) -> None:
    flow = NewFlow("group")
    pages = flow.group(Working, [{"note": str(number)} for number in range(5)], name="page")
    flow.add(Other, after=pages, name="callback")
    flow.enqueue()
    run_jobs("test.work")
    assert states(flow) == {f"page-{n}": "completed" for n in range(1, 6)} | {"callback": "pending"}
    run_jobs()
    assert set(states(flow).values()) == {"completed"}


def test_a_callback_gets_the_results_in_their_order(run_jobs, scripted) -> None:
    got: list[Any] = []
    scripted("test.work", lambda job: {"page": job.payload.note})
    scripted("test.other", lambda job: got.extend(job.parents()))
    flow = NewFlow("results")
    pages = flow.group(Working, [{"note": note} for note in "cab"], name="page")
    flow.add(Other, after=[pages[2], pages[0], pages[1]])
    flow.enqueue()
    run_jobs()
    assert [(parent.name, parent.result) for parent in got] == [
        ("page-3", {"page": "b"}), ("page-1", {"page": "c"}), ("page-2", {"page": "a"}),
    ]  # fmt: skip


def test_parents_are_read_in_parts_and_by_async_handlers(monkeypatch, scripted, run_jobs) -> None:
    monkeypatch.setattr(parents, "BATCH", 2)
    got: list[list[str]] = []

    async def names(job: ClaimedJob) -> list[str]:
        return [parent.name async for parent in job.parents()]

    scripted("test.other", lambda job: got.append(async_to_sync(names)(job)))
    scripted("test.once", lambda job: got.append([parent.name for parent in job.parents()]))
    flow = NewFlow("parts")
    for count in (1, 2, 5):
        pages = flow.group(Working, [None] * count, name=f"of{count}")
        flow.add(Once, after=pages)
        flow.add(Other, after=pages)
    flow.enqueue()
    run_jobs("test.work", "test.once")
    run_jobs("test.other")
    expected = [[f"of{count}-{n}" for n in range(1, count + 1)] for count in (1, 2, 5)]
    assert got == expected * 2


def test_a_callback_after_any_end_gets_counts(run_jobs, scripted) -> None:
    got: list[Any] = []
    scripted("test.other", lambda job: got.append((job.parents().counts(), list(job.parents()))))
    flow = NewFlow("counts")
    pages = [flow.add(Working, FAILS if number == 2 else None) for number in range(4)]
    flow.add(Other, after_end=pages)
    flow.enqueue()
    run_jobs()
    [(counts, parents)] = got
    assert counts == {"completed": 3, "failed": 1}
    assert [parent.error for parent in parents] == ["", "", "no", ""]


@pytest.mark.parametrize(
    ("ends", "after", "expected"),
    [
        (["nothing", "nothing"], "after", "pending"),
        (["nothing", "skip"], "after", "pending"),
        (["nothing", "permanent"], "after", "cancelled"),
        (["permanent", "nothing"], "after", "cancelled"),
        (["cancel", "nothing"], "after", "cancelled"),
        (["nothing", "permanent"], "after_failure", "pending"),
        (["cancel", "nothing"], "after_failure", "pending"),
        (["nothing", "skip"], "after_failure", "skipped"),
        (["permanent", "cancel"], "after_end", "pending"),
    ],
)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_how_the_parents_must_end(ends, after, expected, order, run_jobs, clock) -> None:
    flow = NewFlow("needs")
    parents = [
        flow.add(Working, {"do": do, "note": "no"}, delay=order[number])
        for number, do in enumerate(ends)
    ]
    flow.add(Other, name="child", **{after: parents})
    flow.enqueue()
    run_jobs("test.work")
    assert states(flow)["child"] == "waiting"
    clock.step(2)
    run_jobs("test.work")
    assert states(flow)["child"] == expected


def test_a_job_may_need_success_and_failure(run_jobs) -> None:
    flow = NewFlow("both")
    good, bad = flow.add(Working), flow.add(Working, FAILS)
    flow.add(Other, after=good, after_failure=bad, name="both")
    flow.add(Other, after=bad, after_failure=good, name="neither")
    flow.enqueue()
    run_jobs()
    assert (states(flow)["both"], states(flow)["neither"]) == ("completed", "cancelled")


def test_a_failure_cancels_what_needs_it_and_runs_what_cleans_up(run_jobs) -> None:
    flow = NewFlow("saga")
    _book, pay, _send = flow.chain([Working, (Working, FAILS), Working])
    last = flow.add(Working, after=pay, name="last")
    flow.add(Other, after_failure=last, name="refund")
    flow.add(Other, after_failure=flow.add(Working), name="not needed")
    flow.enqueue()
    run_jobs()
    assert states(flow) == {
        "work": "completed", "work-2": "failed", "work-3": "cancelled", "last": "cancelled",
        "refund": "completed", "work-4": "completed", "not needed": "skipped",
    }  # fmt: skip
    errors = dict(Job.objects.filter(flow_id=flow.id).values_list("flow_name", "error"))
    assert errors["last"] == f"waited for job {pay.id}, which was failed"
    assert errors["not needed"] == "none of the jobs that it waited for failed"


def test_a_diamond_of_graphs(run_jobs, scripted) -> None:
    order: list[str] = []
    scripted("test.work", lambda job: order.append(job.payload.note))
    flow = NewFlow("diamond")
    flow.add(Working, {"note": "d"}, name="d", after=["b", "c"])  # parents may follow, by name
    flow.add(Working, {"note": "b"}, name="b", after="a")
    flow.add(Working, {"note": "c"}, name="c", after="a")
    flow.add(Working, {"note": "a"}, name="a")
    flow.enqueue()
    run_jobs()
    assert order[0] == "a"
    assert sorted(order[1:3]) == ["b", "c"]
    assert order[3:] == ["d"]


def test_a_flow_within_a_flow(run_jobs) -> None:
    inner = NewFlow("pictures")
    read = inner.add(Working, name="read")
    inner.group(Working, [None, None], name="scale", after=read)
    flow = NewFlow("album")
    before = flow.add(Working, name="before")
    ends = flow.add_flow(inner, after=before)
    again = flow.add_flow(inner, name="again", after=ends)
    flow.add(Other, after=again, name="publish")
    assert [str(job) for job in ends] == ["pictures/scale-1", "pictures/scale-2"]
    flow.enqueue()
    run_jobs()
    assert set(states(flow)) == {
        "before", "pictures/read", "pictures/scale-1", "pictures/scale-2", "again/read",
        "again/scale-1", "again/scale-2", "publish",
    }  # fmt: skip
    assert set(states(flow).values()) == {"completed"}


def test_a_rollback_leaves_nothing() -> None:
    flow = NewFlow("rolled back")
    flow.add(Other, after=[flow.add(Working), flow.add(Working)])
    with transaction.atomic():
        flow.enqueue()
        transaction.set_rollback(True)
    assert not Flow.objects.exists()
    assert not Job.objects.exists()
    assert not Dependency.objects.exists()


def test_a_flow_with_a_unique_key_is_created_once() -> None:
    flows = [NewFlow("import 7", unique_key="import:7") for _ in range(2)]
    for flow in flows:
        flow.add(Working)
    ids = {flow.enqueue() for flow in flows}
    assert len(ids) == Job.objects.count() == 1
    assert [flow.is_new for flow in flows] == [True, False]


# --- parents outside of the flow ------------------------------------------------------------------


def test_a_parent_in_the_history_and_one_that_runs_later(run_jobs, clock) -> None:
    done = enqueue(Working)
    run_jobs()
    assert Job.objects.get(pk=done).done_on is not None
    later = enqueue(Working, delay=60)
    flow = NewFlow("others")
    flow.add(Other, after=[done, later], name="both")
    flow.add(Other, after=done, name="at once")
    flow.enqueue()
    assert states(flow) == {"both": "waiting", "at once": "pending"}
    clock.step(61)
    run_jobs("test.work")
    assert states(flow)["both"] == "pending"


def test_a_parent_of_another_flow(run_jobs) -> None:
    first, second = NewFlow("first"), NewFlow("second")
    parent = first.add(Working)
    first.enqueue()
    second.add(Other, after=parent, name="child")
    second.enqueue()
    run_jobs()
    assert states(second) == {"child": "completed"}


# --- what is refused ------------------------------------------------------------------------------


def refused(flow: NewFlow) -> str:
    with pytest.raises(InvalidJob) as error:
        flow.enqueue()
    assert not Flow.objects.exists()
    return str(error.value)


def test_a_circle_is_refused_with_its_names() -> None:
    flow = NewFlow("circle")
    flow.add(Working, name="a", after="c")
    flow.add(Working, name="b", after="a")
    flow.add(Working, name="c", after="b")
    flow.add(Working, name="d")
    text = refused(flow)
    assert text.startswith("flow 'circle': jobs wait for one another: ")
    assert sorted(set(text.partition("another: ")[2].split(" → "))) == ["a", "b", "c"]


def test_an_unknown_parent_is_refused() -> None:
    flow = NewFlow("unknown")
    flow.add(Working, name="stage")
    flow.add(Working, name="promote", after="stagee")
    assert refused(flow) == (
        "flow 'unknown': the job 'promote' waits for 'stagee': there is no job with this name;"
        " did you mean 'stage'?"
    )


def test_a_parent_that_does_not_exist_is_refused() -> None:
    flow = NewFlow("missing")
    flow.add(Working, name="a", after=123_456_789)
    assert "waits for job 123456789, which does not exist" in refused(flow)


@pytest.mark.parametrize("after", ["after", "after_failure"])
def test_a_job_that_would_never_run_is_refused(after: str, run_jobs) -> None:
    parent = enqueue(Working)
    if after == "after":
        cancel([parent])
    else:
        run_jobs()
    flow = NewFlow("never")
    flow.add(Other, **{after: parent})
    assert "would never run" in refused(flow)


def test_two_jobs_with_one_name_are_refused() -> None:
    flow = NewFlow("names")
    flow.add(Working, name="a")
    with pytest.raises(InvalidJob, match="flow 'names' has two jobs with the name 'a'"):
        flow.add(Working, name="a")


def test_a_parent_in_two_ways_is_refused() -> None:
    flow = NewFlow("ways")
    parent = flow.add(Working, name="a")
    with pytest.raises(InvalidJob, match="the job 'other' waits for a in two ways"):
        flow.add(Other, after=parent, after_end=parent)


def test_a_parent_in_two_ways_by_its_name_is_refused() -> None:
    flow = NewFlow("ways")
    parent = flow.add(Working, name="a")
    flow.add(Other, after=parent, after_failure="a")
    assert "the job 'other' waits for a in two ways" in refused(flow)


def test_an_option_of_other_jobs_is_refused() -> None:
    with pytest.raises(InvalidJob, match="takes no unique_key"):
        NewFlow("options").add(Working, unique_key="x")


def test_a_flow_without_jobs_is_refused() -> None:
    assert refused(NewFlow("empty")) == "flow 'empty' has no jobs"


def test_a_million_jobs_are_refused_with_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes with the first job too many, not after the last."""
    monkeypatch.setattr(graph, "MAX_JOBS", 1000)
    read = []
    flow = NewFlow("big")
    with pytest.raises(InvalidJob, match="flow 'big' has more than 1,000 jobs: let a job enqueue"):
        flow.group(Once, (read.append(number) for number in range(1_000_000)))
    assert len(read) == 1001


def test_too_many_dependencies_are_refused_with_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPENDENCIES", 100)
    flow = NewFlow("wide")
    first = flow.group(Once, [None] * 11)
    with pytest.raises(InvalidJob, match="wait for more than 100 parents in all: add a job that"):
        flow.group(Once, [None] * 11, name="second", after=first)
