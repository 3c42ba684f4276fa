"""Explain names the transaction because of which claims pass over a job."""

import pytest

from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tests.jobs.inspection.explained import words
from tests.kit import claimed, held
from tests.sandbox.handlers import Fair, Ordered, Working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("handler", [Working, Fair, Ordered])
@pytest.mark.parametrize("lock", ["FOR SHARE", "FOR UPDATE"])
def test_a_locked_job_names_the_session_that_holds_it(handler: type[Working], lock: str) -> None:
    id = enqueue(handler)
    with held(f"SELECT 1 FROM tailrace_jobs_job WHERE id = %s {lock}", id) as pid:
        assert f"session {pid} (psql), in a transaction since 2" in words(id, "row_locked")
        assert explain(id).ready == "no"
        assert claimed(handler.name) == []
    assert explain(id).ready == "yes"
    assert [job.id for job in claimed(handler.name)] == [id]


def test_a_job_that_several_have_locked_is_explained() -> None:
    id = enqueue(Working)
    share = "SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR SHARE"
    with held(share, id), held(share, id):
        assert words(id, "row_locked").startswith("Another transaction has locked the job's row")


def test_explaining_a_job_keeps_no_lock_on_it() -> None:
    id = enqueue(Working)
    assert explain(id).ready == "yes"
    with held("SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR UPDATE NOWAIT", id):
        pass
