"""Which tasks can move as they are, and why others cannot."""

import pytest

from tailrace.jobs.platform.adopting import celery_settings, report
from tailrace.jobs.platform.adopting.tasks import TaskReport, Verdict
from tailrace.jobs.platform.adopting.workers import Workers
from tests.jobs.adopting.shop import app
from tests.sandbox import durable

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def tasks(rows_of_module) -> dict[str, TaskReport]:
    return {task.name: task for task in report.report_on(app, ask_workers=False).tasks}


@pytest.mark.parametrize("name", ["send_receipt", "encode", "weigh", "tell", "starts_others"])
def test_tasks_with_json_move_as_they_are(tasks, name: str) -> None:
    assert tasks[f"stall.{name}"].verdict == Verdict.MOVES
    assert tasks[f"stall.{name}"].reasons == ()


def test_a_type_that_is_no_json_is_named_although_the_task_moves(tasks) -> None:
    assert tasks["stall.tell"].notes == (
        "the argument 'order' is declared as Order: calls that pass one are refused, as they are"
        " today",
    )
    assert tasks["stall.send_receipt"].notes == tasks["stall.weigh"].notes == ()


def test_pickle_is_refused_and_what_json_cannot_carry_is_named(tasks) -> None:
    task = tasks["stall.pickled"]
    assert task.verdict == Verdict.CHANGE_FIRST
    serializer, order, tags, seen = task.reasons
    assert serializer.startswith("its serializer is 'pickle', which is refused: set serializer=")
    assert order == "the argument 'order' is declared as Order, which JSON cannot carry"
    assert tags == "the argument 'tags' is declared as set, which JSON cannot carry"
    assert seen == "the argument 'seen' has a frozenset as its default, which JSON cannot carry"


def test_other_serializers_are_named(tasks) -> None:
    [reason] = tasks["stall.packed"].reasons
    assert reason == (
        "its serializer is 'msgpack'; arguments of durable tasks are JSON, or in a serializer in"
        " accept_content"
    )


@pytest.mark.parametrize(
    ("name", "base"), [("of_base", "shop.Logged"), ("of_class", "shop.OfClass")]
)
def test_a_class_of_celery_itself_stays(tasks, name: str, base: str) -> None:
    task = tasks[f"stall.{name}"]
    assert task.verdict == Verdict.STAYS
    assert f"its class tests.jobs.adopting.{base} derives from celery.Task" in task.reasons[0]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("waits", "price.get(timeout=3)"),
        ("waits_directly", "send_receipt.apply_async((1,), countdown=3).get()"),
        ("waits_for_group", "group((send_receipt.s(n) for n in range(3)))().join()"),
        ("waits_for_many", "result.get()"),
        ("asks_for_result", "app.AsyncResult(id).get()"),
    ],
)
def test_waiting_for_a_result_inside_a_task_is_found(tasks, name: str, call: str) -> None:
    task = tasks[f"stall.{name}"]
    assert task.verdict == Verdict.CHANGE_FIRST
    [reason] = task.reasons
    assert f"waits for a result inside the task: `{call}`; make it a chain or a chord" in reason


def test_the_line_is_that_of_the_file(tasks) -> None:
    from tests.jobs.adopting import shop

    number = int(tasks["stall.waits"].reasons[0].split()[1])
    with open(shop.__file__) as file:
        assert "price.get(timeout=3)" in file.read().splitlines()[number - 1]


def test_queues_are_those_of_the_routes(tasks) -> None:
    assert tasks["stall.encode"].queue == "stall_media"
    assert tasks["stall.send_receipt"].queue == "celery"


def test_tasks_of_celery_and_handlers_are_left_out(tasks) -> None:
    assert "stall.send_receipt" in tasks
    assert not {"celery.chord", "test.work", "tailrace.work"} & set(tasks)


def test_tasks_of_our_class_are_durable_already() -> None:
    whole = report.report_on(durable.add.app, ask_workers=False)
    assert durable.add.name in [task.name for task in whole.of(Verdict.DURABLE)]


def test_settings_without_a_meaning_are_named() -> None:
    reports = {each.name: each for each in celery_settings.of_app(app, None)}
    name = "broker_transport_options['visibility_timeout']"
    assert set(reports) == {"task_acks_late", name}
    assert reports[name].value == 7200
    assert not any(each.is_obstacle for each in reports.values())


def test_a_serializer_of_results_that_jobs_do_not_have_is_named(monkeypatch) -> None:
    monkeypatch.setitem(app.conf, "result_serializer", "pickle")
    [named] = [each for each in celery_settings.of_app(app, None) if "result" in each.name]
    assert (named.name, named.value) == ("result_serializer", "pickle")
    assert named.meaning.endswith("a task that returns another value fails at its end")
    assert not named.is_obstacle


def test_a_pool_without_time_limits_is_named() -> None:
    running = Workers({"celery": ["a@b", "c@b"]}, {"a@b": "prefork", "c@b": "gevent"})
    [pool] = [each for each in celery_settings.of_app(app, running) if "pool" in each.name]
    assert (pool.name, pool.value) == ("the pool of c@b", "gevent")
    assert pool.meaning.startswith("has no time limits for durable tasks")
    assert not pool.is_obstacle


def test_a_name_with_an_at_sign_is_refused(tasks) -> None:
    assert tasks["stall.at@once"].reasons == (
        "its name has an @, which separates a task from its queue on the board",
    )


def test_a_queue_that_no_worker_consumes_is_an_obstacle(monkeypatch) -> None:
    whole = report.report_on(app, ask_workers=False)
    assert whole.unserved_queues == ()
    assert "no worker consumes" not in " ".join(whole.obstacles())
