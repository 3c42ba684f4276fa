"""Why a job of a flow waits: which parents have not ended, and why."""

import pytest

from tailrace.jobs.flows import NewFlow
from tailrace.jobs.flows.operations import pause_flow
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.explain.explanation import Explanation, explain
from tests.jobs.flows.kit import FAILS, stored
from tests.kit import claimed
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db


def explained(name: str) -> Explanation:
    return explain(Job.objects.get(flow_name=name).pk)


def words(name: str, code: str) -> str:
    reasons = {reason.code: reason.words for reason in explained(name).reasons}
    return reasons[code]


def test_it_names_the_parents_that_have_not_ended(run_jobs) -> None:
    flow = NewFlow("group")
    pages = [flow.add(Working, delay=600 * (number > 1)) for number in range(10)]
    flow.add(Other, after=pages, name="callback")
    flow.enqueue()
    run_jobs()
    ids = [page.id for page in pages[2:7]]
    assert words("callback", "waits") == (
        f"The job waits for jobs {', '.join(map(str, ids))} and 3 more: 2 of 10 jobs that it waits"
        " for have ended."
    )


def test_it_says_why_they_have_not_ended() -> None:
    flow = NewFlow("chain")
    first, second = flow.chain([Working, Working])
    later = flow.add(Working, delay=600)
    flow.add(Other, after=[first, second, later], name="callback")
    flow.enqueue()
    [running] = claimed("test.work")
    why = [reason.words for reason in explained("callback").reasons if reason.code == "parent"]
    assert why[0].startswith(f"Job {running.id}: The job has been running on {running.worker}")
    assert why[1].startswith(f"Job {second.id}: The job waits for job {first.id}")
    assert why[2].startswith(f"Job {later.id}: Not now: ")


def test_it_says_what_is_decided_already(run_jobs) -> None:
    flow = NewFlow("failed")
    parents = [flow.add(Working, FAILS), flow.add(Working), flow.add(Working, delay=60)]
    flow.add(Other, after=parents, name="needs success")
    flow.add(Other, after_failure=parents, name="needs failure")
    flow.enqueue()
    run_jobs()
    assert words("needs success", "parent_failed") == (
        f"It needs the success of job {parents[0].id}, which did not complete: unless replayed"
        " before the others end, it is cancelled."
    )
    assert "at least one of 3 jobs failed or was cancelled; so far 1 did" in words(
        "needs failure", "needs_failure"
    )


def test_it_says_that_the_flow_is_paused() -> None:
    flow = NewFlow("paused")
    flow.add(Working, name="first")
    flow.enqueue()
    pause_flow(stored(flow), "Ann")
    assert words("first", "flow_paused").startswith(f"Ann paused its flow {flow.id} (paused) ")
    assert explained("first").summary == words("first", "flow_paused")


def test_it_says_that_a_job_was_not_needed(run_jobs) -> None:
    flow = NewFlow("fine")
    flow.add(Other, after_failure=flow.add(Working), name="refund")
    flow.enqueue()
    run_jobs()
    assert words("refund", "not_needed") == (
        "The job runs only if another job fails: none of the jobs that it waited for failed."
    )
