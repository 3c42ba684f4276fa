"""Canvas: chains, groups and chords are flows."""

import subprocess
import sys
from typing import Any

import pytest
from celery import chain, chord, current_app, group, signals
from celery.app.trace import trace_task
from celery.exceptions import ChordError, CPendingDeprecationWarning, ImproperlyConfigured

from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming.begin import begin
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.frameworks.celery_tasks import worker
from tailrace.jobs.models import Flow, Job, QueueActivity
from tailrace.jobs.operations.replay import replay
from tests.kit import PATIENCE, ROOT
from tests.sandbox import durable
from tests.sandbox.durable import add, fail, identity, silent, tsum
from tests.sandbox.models import Effect

pytestmark = pytest.mark.django_db


def states() -> list[tuple[str, str]]:
    return [(job.handler.rpartition(".")[2], job.state) for job in Job.objects.order_by("pk")]


def notes() -> list[str]:
    return [each.note for each in Effect.objects.order_by("pk")]


def test_a_chain_is_a_flow_whose_jobs_wait_for_one_another(run_jobs) -> None:
    result = chain(add.s(1, 2), add.s(3), identity.s()).delay()
    assert states() == [("add", "pending"), ("add", "waiting"), ("identity", "waiting")]
    assert Flow.objects.get().name == "2× add, identity"
    run_jobs()
    assert result.get(timeout=1) == 6
    assert [result.parent.get(timeout=1), result.parent.parent.get(timeout=1)] == [6, 3]
    assert add.AsyncResult(result.parent.parent.id).children[0].id == result.parent.id


@pytest.mark.django_db(transaction=True)
def test_the_next_job_of_a_chain_gets_a_wake_up_if_each_drain_runs_one_job(monkeypatch) -> None:
    """A drain that ends after one job claims no second one, so it must not leave it to itself."""
    monkeypatch.setattr(worker, "counts_tasks", True)
    chain(durable.scripted.s(), durable.scripted.s()).delay()
    handler = registry.get(durable.scripted.name)
    # Another worker gets the wake-up of the claim, and finds no job: the second one waits yet.
    durable.script.append(lambda task: begin(handler) and None)
    assert drain(handler.name) == 1
    assert [state for _name, state in states()] == ["completed", "pending"]
    assert QueueActivity.objects.filter(name=handler.name).latest("slice").awake


@pytest.mark.parametrize("steps", [150, pytest.param(300, marks=pytest.mark.long)])
def test_a_chain_of_many_steps_needs_no_deep_recursion(steps: int, run_jobs) -> None:
    result = chain(add.s(1) for _step in range(steps)).delay(0)
    assert Job.objects.count() == steps
    assert run_jobs() == steps
    assert result.get(timeout=1) == steps


def test_immutable_signatures_wait_and_get_no_result(run_jobs) -> None:
    result = chain(add.s(1, 2), add.si(10, 20)).delay()
    run_jobs()
    assert result.get(timeout=1) == 30


def test_a_result_that_is_ignored_reaches_the_next_task(run_jobs) -> None:
    result = chain(silent.s(5), add.s(1)).delay()
    run_jobs()
    assert result.get(timeout=1) == 6


def test_what_follows_a_failure_has_its_exception(run_jobs) -> None:
    result = chain(fail.s("no paper"), identity.s(), identity.s()).delay()
    run_jobs()
    assert [state for _name, state in states()] == ["failed", "cancelled", "cancelled"]
    assert (result.state, result.parent.state) == ("FAILURE", "FAILURE")
    with pytest.raises(ValueError, match="no paper"):
        result.get(timeout=1)
    with pytest.raises(ValueError, match="no paper"):
        identity.AsyncResult(result.id).get(timeout=1)


def test_links_are_called_with_the_result(run_jobs) -> None:
    add.apply_async((1, 2), link=[add.s(10), add.s(20), group(add.s(30), add.si(1, 1))])
    run_jobs()
    assert sorted(notes()) == ["1 + 1", "1 + 2", "3 + 10", "3 + 20", "3 + 30"]


def test_error_links_are_called_once_inline_or_as_tasks(run_jobs) -> None:
    result = fail.apply_async(
        ("a",), link_error=[durable.errback.s(), durable.errback_with_error.s()]
    )
    run_jobs()
    assert sorted(notes()) == [f"errback of {result.id}", f"errback of {result.id}: ValueError: a"]


def test_a_group_is_a_flow_of_jobs_side_by_side(run_jobs) -> None:
    result = group(add.s(number, number) for number in range(5)).delay()
    assert {state for _name, state in states()} == {"pending"}
    assert Flow.objects.get().name == "5× add"
    run_jobs()
    assert result.get(timeout=1) == [0, 2, 4, 6, 8]
    assert (result.successful(), result.completed_count()) == (True, 5)


def test_a_group_result_is_saved_and_restored(run_jobs) -> None:
    result = group(add.s(1, 1), add.s(2, 2)).delay()
    result.save()
    restored = type(result).restore(result.id)
    run_jobs()
    assert restored.get(timeout=1) == [2, 4]
    restored.delete()
    result.backend._cache.clear()
    assert type(result).restore(result.id) is None


def test_a_chord_gives_its_body_the_results_in_order(run_jobs) -> None:
    result = chord([add.s(1, 1), silent.s(5), add.s(2, 2)], identity.s()).delay()
    assert states()[-1] == ("identity", "waiting")
    run_jobs()
    assert result.get(timeout=1) == [2, 5, 4]


def test_a_group_in_a_chain_is_a_chord(run_jobs) -> None:
    result = (add.s(1, 1) | group(add.s(10), add.s(20)) | tsum.s() | add.s(100)).delay()
    assert Flow.objects.count() == 1
    run_jobs()
    assert result.get(timeout=1) == 134


def test_chains_and_chords_are_parts_of_chords(run_jobs) -> None:
    inner = chord([add.s(1, 1), chain(add.s(2, 2), add.s(1))], tsum.s())
    result = chord(
        [inner, add.s(10, 10), chain(add.s(1, 1), group(add.s(1), add.s(2)))], identity.s()
    )
    applied = result.delay()
    assert Flow.objects.count() == 1
    run_jobs()
    assert applied.get(timeout=1) == [7, 20, [3, 4]]


def test_a_chord_of_one_part_and_one_of_none(run_jobs) -> None:
    one = chord([add.s(1, 1)], tsum.s()).delay()
    none = chord([], identity.s()).delay()
    run_jobs()
    assert (one.get(timeout=1), none.get(timeout=1)) == (2, [])


def test_a_chord_with_a_part_that_fails_has_a_chord_error(run_jobs) -> None:
    result = chord([add.s(1, 1), fail.s("no paper")], tsum.s()).delay()
    run_jobs()
    assert states()[-1] == ("tsum", "cancelled")
    with pytest.raises(ChordError, match=r"Dependency \S+ raised ValueError\('no paper'\)"):
        tsum.AsyncResult(result.id).get(timeout=1)
    after = (chord([fail.s("x"), add.s(1)], tsum.s()) | add.s(1)).delay()
    run_jobs()
    with pytest.raises(ChordError, match="raised ValueError"):
        add.AsyncResult(after.id).get(timeout=1)


def test_the_error_links_of_a_body_are_called_if_a_part_fails(run_jobs) -> None:
    body = tsum.s().on_error(durable.errback_with_error.s())
    chord([add.s(1, 1), fail.s("no paper")], body).delay()
    linked = chord([fail.s()], tsum.s().on_error(durable.errback.s())).delay()
    chord([add.s(1, 1), add.s(2, 2)], tsum.s().on_error(durable.errback.s())).delay()
    run_jobs()
    [inline, task] = sorted(note for note in notes() if note.startswith("errback"))[::-1]
    assert "ChordError: Dependency" in inline or "ChordError: Dependency" in task
    linked = tsum.AsyncResult(linked.id)
    assert linked.children[0].results[0].get(timeout=1) is None
    assert ("chord_error", "skipped") in states()


def test_the_error_link_of_a_chain_is_called_for_the_task_that_fails(run_jobs) -> None:
    chain(add.s(1, 1), fail.si("b"), add.s(1)).apply_async(link_error=durable.errback.s())
    run_jobs()
    failed = Job.objects.get(state="failed")
    assert [note for note in notes() if "errback" in note] == [f"errback of {failed.payload['id']}"]


@pytest.mark.parametrize(
    ("task", "expected"),
    [(durable.spread.s(3), [1, 2, 3]), (durable.pass_on.s(1), 12), (durable.join_in.s(1), 5)],
)
def test_a_task_that_is_replaced_has_the_result_of_its_replacement(
    task: Any, expected: Any, run_jobs
) -> None:
    result = task.delay()
    run_jobs()
    assert result.get(timeout=1) == expected
    skipped = Job.objects.get(state="skipped")
    assert skipped.error.startswith("replaced by job ")


def test_what_waits_for_a_replaced_task_waits_for_its_replacement(run_jobs) -> None:
    result = (durable.spread.s(3) | identity.s()).delay()
    run_jobs()
    assert result.get(timeout=1) == [1, 2, 3]
    result = chord([add.s(0, 0), durable.pass_on.s(1), durable.join_in.s(1)], identity.s()).delay()
    run_jobs()
    assert result.get(timeout=1) == [0, 12, 5]


def test_a_replacement_survives_the_transaction_of_its_task(run_jobs, do) -> None:
    from django.db import transaction

    def replaced(self):
        with transaction.atomic():
            return self.replace(add.s(1, 1))

    do(replaced)
    result = durable.scripted.delay()
    run_jobs()
    assert result.get(timeout=1) == 2


def test_a_task_adds_another_one_to_its_chord(run_jobs) -> None:
    result = chord([durable.add_part.s(1), add.s(2, 2)], identity.s()).delay()
    run_jobs()
    assert result.get(timeout=1) == [1, 101, 201, 4]


def test_a_canvas_that_a_task_calls_is_a_flow_of_its_own(run_jobs, do) -> None:
    do(lambda self: chord([add.s(1, 1), add.s(2, 2)], tsum.s()).delay().id)
    result = durable.scripted.delay()
    run_jobs()
    assert tsum.AsyncResult(result.get(timeout=1)).get(timeout=1) == 6
    assert Flow.objects.count() == 1


def test_map_starmap_and_chunks(run_jobs) -> None:
    mapped, starred = identity.map([1, 2]).delay(), add.starmap([(1, 2), (3, 4)]).delay()
    chunked = add.chunks([(number, 1) for number in range(4)], 2).delay()
    run_jobs()
    assert (mapped.successful(), starred.successful()) == (True, True)
    assert sorted(notes())[:2] == ["0 + 1", "1 + 1"]
    assert chunked.completed_count() == 2


def test_a_chord_of_jobs_and_plain_tasks_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"and 'tests\.sandbox\.durable\.plain'"):
        chord([add.s(1, 1), durable.plain.s(1)], tsum.s()).delay()
    with pytest.raises(ImproperlyConfigured, match=r"and 'tests\.sandbox\.durable\.plain'"):
        chord([add.s(1, 1)], durable.plain.s()).delay()
    assert not Job.objects.exists()


def test_an_error_in_a_group_leaves_nothing() -> None:
    with pytest.raises(TypeError):
        group(add.s(1), add.s(object())).delay()
    assert not Job.objects.exists()


def test_countdown_and_expiry_of_a_step_begin_at_the_end_of_the_one_before(run_jobs, clock) -> None:
    first = add.s(1, 1).set(countdown=100)
    result = chain(first, add.s(1).set(expires=60), add.s(1).set(countdown=30)).delay()
    clock.step(101)
    run_jobs()
    assert result.parent.get(timeout=1) == 3
    assert (result.state, run_jobs()) == ("PENDING", 0)
    clock.step(31)
    run_jobs()
    assert result.get(timeout=1) == 4


def test_error_links_are_called_again_when_an_operator_runs_the_call_again(run_jobs) -> None:
    fail.apply_async(("a",), link_error=durable.errback.s())
    run_jobs()
    replay([Job.objects.get(state="failed").pk])
    run_jobs()
    assert len(notes()) == 2


def test_the_error_links_of_a_chord_that_never_began_are_not_called(run_jobs) -> None:
    body = tsum.s().on_error(durable.errback.s())
    result = chain(fail.s("no paper"), chord([add.si(1, 1), add.si(2, 2)], body)).delay()
    run_jobs()
    assert notes() == []
    with pytest.raises(ChordError):
        tsum.AsyncResult(result.id).get(timeout=1)


def test_the_tasks_of_a_group_as_a_body_have_the_error_of_the_part(run_jobs) -> None:
    result = chord([add.s(1, 1), fail.s("b")], group(tsum.s(), tsum.s())).delay()
    run_jobs()
    assert [type(each.result) for each in result.results] == [ValueError, ValueError]


def test_empty_chains_in_a_header_are_left_out(run_jobs) -> None:
    none = chord([chain()], tsum.s()).delay()
    some = chord([chain(), add.s(1, 1), chain(), add.s(2, 2)], tsum.s()).delay()
    run_jobs()
    assert (none.get(timeout=1), some.get(timeout=1)) == (0, 6)


def test_an_error_link_of_nested_chords_is_called_once(run_jobs) -> None:
    inner = chord([add.si(1, 1), fail.si()], identity.si(2))
    outer = chord([add.si(1, 1), inner], identity.si(3))
    with pytest.warns(CPendingDeprecationWarning):
        outer.link_error(durable.errback.si("once"))
    outer.delay()
    run_jobs()
    assert [note for note in notes() if "errback" in note] == ["errback of once"]


def test_a_plain_task_is_followed_by_a_job() -> None:
    """As Celery's worker calls it, which repeats a call that the broker refuses."""
    link = add.s(1).set(retry=True)
    request = {"id": "plain-id", "delivery_info": {}, "callbacks": [link], "chain": [add.s(2)]}
    trace_task(durable.plain, "plain-id", (5,), {}, request, app=current_app)
    assert [job.payload["args"] for job in Job.objects.order_by("pk")] == [[5, 1], [5, 2]]
    assert {job.payload["headers"]["parent_id"] for job in Job.objects.all()} == {"plain-id"}


def test_a_job_is_followed_by_a_plain_task(run_jobs, received) -> None:
    events = received(signals.before_task_publish)
    chain(add.s(1, 1), durable.plain.s()).delay()
    assert Job.objects.count() == 1
    run_jobs()
    assert [sender for _name, sender, _arguments in events] == [
        "tests.sandbox.durable.add", "tests.sandbox.durable.plain"
    ]  # fmt: skip
    assert events[1][2]["body"][0] == (2,)


FIRST_CALL = """
import django
django.setup()
from celery import group
from tests.sandbox.durable import add
group(add.s(number, 1) for number in range(3))()
"""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_group_is_one_flow_also_as_the_first_call_of_a_process(process_env) -> None:
    subprocess.run(
        [sys.executable, "-c", FIRST_CALL],
        env=process_env, cwd=ROOT, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert Flow.objects.count() == 1
    assert Job.objects.count() == 3
