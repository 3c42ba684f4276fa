"""Arguments in a serializer that the project has registered: only its decoder opens them."""

import base64
import hmac
import json
from ast import literal_eval
from collections.abc import Iterator

import pytest
from celery import chain, chord, current_app, group
from kombu.serialization import register, unregister

from tailrace.jobs.frameworks.celery_tasks.checks import check_celery_tasks
from tailrace.jobs.frameworks.celery_tasks.message.encoding import NotJson
from tailrace.jobs.models import Job
from tests.sandbox import durable

pytestmark = pytest.mark.django_db
NAME, CONTENT_TYPE = "signed", "application/x-signed"
KEY = b"a key of the project"
opened: list[str] = []


def plain(value: object) -> object:
    """Return the value with dicts instead of signatures, whose texts are those of calls."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value


def encode(value: object) -> str:
    text = repr(plain(value))
    return json.dumps([text, hmac.new(KEY, text.encode(), "sha256").hexdigest()])


def decode(text: str) -> object:
    content, signature = json.loads(text)
    opened.append(content)
    if not hmac.compare_digest(hmac.new(KEY, content.encode(), "sha256").hexdigest(), signature):
        raise ValueError("a wrong signature, with a secret in its text")
    return literal_eval(content)


@pytest.fixture(autouse=True)
def registered(configured) -> Iterator[None]:
    register(NAME, encode, decode, content_type=CONTENT_TYPE, content_encoding="utf-8")
    configured(accept_content=["json", NAME])
    opened.clear()
    yield
    unregister(NAME)


def test_the_task_gets_what_was_passed(run_jobs, do) -> None:
    calls = []
    do(lambda self, *args, **kwargs: calls.append((args, kwargs)))
    durable.scripted.apply_async(({1, 2}, 1j), {"at": b"x"}, serializer=NAME)
    stored = Job.objects.get().payload
    assert (stored["opaque"]["type"], stored.get("args"), stored.get("kwargs")) == (
        CONTENT_TYPE, None, None
    )  # fmt: skip
    assert opened == []
    run_jobs()
    assert calls == [(({1, 2}, 1j), {"at": b"x"})]
    assert len(opened) == 1


def test_a_retry_has_them_too(run_jobs, do, monkeypatch) -> None:
    monkeypatch.setitem(durable.scripted._get_exec_options(), "serializer", NAME)
    calls = []

    def retry(self, *args):
        calls.append(args)
        raise self.retry(countdown=0)

    do(retry, lambda self, *args: calls.append(args))
    durable.scripted.delay({1, 2})
    run_jobs()
    run_jobs()
    assert calls == [({1, 2},)] * 2


def test_results_of_other_tasks_are_passed_beside_them(run_jobs) -> None:
    add, total = durable.add, durable.tsum
    result = chain(add.s(1, 2), add.s(3).set(serializer=NAME)).delay()
    summed = (group(add.s(n, n) for n in (1, 2)) | total.s().set(serializer=NAME)).delay()
    run_jobs()
    assert (result.get(timeout=1), summed.get(timeout=1)) == (6, 6)


def test_callbacks_of_an_error_have_theirs(run_jobs, do) -> None:
    calls = []
    do(lambda self, *args: calls.append(args))
    errback = durable.scripted.si({1, 2}, {3: (4, 5)}).set(serializer=NAME)
    durable.fail.apply_async(serializer=NAME, link_error=[errback])
    run_jobs()
    assert calls == [({1, 2}, {3: (4, 5)})]


def test_so_have_callbacks_of_an_error_in_a_chord_within_a_chord(run_jobs, do) -> None:
    calls = []
    do(*[lambda self, *args: calls.append(args)] * 5)
    fail, add, errback = (
        each.set(serializer=NAME)
        for each in (
            durable.fail.si(), durable.add.si(1, 2), durable.scripted.si({1, 2}, {3: (4, 5)})
        )
    )  # fmt: skip
    outer = chord([chord([fail], add), add.clone()], add.clone())
    outer.link_error(errback)
    outer.delay()
    run_jobs()
    assert calls == [({1, 2}, {3: (4, 5)})]


def test_a_callback_whose_arguments_are_not_json_is_refused_at_the_call() -> None:
    with pytest.raises(NotJson, match=r"durable\.scripted: argument 1 \(of type builtins\.set\)"):
        durable.add.apply_async((1, 2), link_error=[durable.scripted.si({1, 2})])
    assert not Job.objects.exists()


RESULTS = ({1, 2}, (1, 2), {3: 4}, [{"at": b"x"}, 1j])


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_that_json_does_not_keep_is_as_the_task_returned_it(
    run_jobs, do, configured, result
) -> None:
    configured(result_serializer=NAME)
    do(lambda self: result, lambda self, passed: [passed])
    last = chain(durable.scripted.s(), durable.scripted.s()).delay()
    run_jobs()
    opened.clear()
    assert str(result) not in str(list(Job.objects.values_list("result", flat=True)))
    assert opened == []
    assert (last.parent.get(timeout=1), last.get(timeout=1)) == (result, [result])


def test_other_results_stay_json(run_jobs, configured) -> None:
    configured(result_serializer=NAME)
    result = durable.identity.delay({"pages": [1, 2]})
    run_jobs()
    assert (Job.objects.get().result, result.get(timeout=1)) == ({"pages": [1, 2]},) * 2


def test_so_is_the_state_that_a_task_stores(run_jobs, do, configured) -> None:
    configured(result_serializer=NAME)
    seen = []

    def store(self):
        self.update_state(state="HALF", meta={"pages": {1, 2}})
        seen.append(self.AsyncResult(self.request.id).info)

    do(store)
    durable.scripted.delay()
    run_jobs()
    assert seen == [{"pages": {1, 2}}]


def test_what_cannot_be_decoded_fails_at_once_and_shows_no_content(run_jobs, caplog) -> None:
    result = durable.add.apply_async((1, 2), serializer=NAME)
    job = Job.objects.get()
    forged = json.dumps(["[[5, 5], {}]", "no"])
    job.payload["opaque"]["data"] = base64.b64encode(forged.encode()).decode()
    job.save()
    run_jobs()
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("failed", 1)
    why = f"its arguments cannot be decoded as {CONTENT_TYPE}: kombu.exceptions.DecodeError"
    assert job.error == why
    assert result.state == "FAILURE"
    assert [line.name for line in caplog.records if line.levelname == "ERROR"] == [
        "tailrace.jobs.runtime.report"
    ]
    assert "secret" not in str(list(job.attempts.values("message", "traceback")))


def run_code() -> None:
    opened.append("code of the payload")


ATTACK = f"c{__name__}\nrun_code\n(tR.".encode()
"""A pickle that calls `run_code` when it is opened."""


@pytest.mark.parametrize("accepted", [["json", NAME], ["json", NAME, "pickle"]])
def test_a_payload_cannot_choose_a_decoder_that_runs_its_code(
    run_jobs, configured, accepted
) -> None:
    """As somebody writes it who may edit the payload of a job, or write to the database."""
    configured(accept_content=accepted)
    durable.add.delay(1, 2)
    job = Job.objects.get()
    data = base64.b64encode(ATTACK).decode()
    kind = "application/x-python-serialize"
    job.payload["opaque"] = {"type": kind, "encoding": "binary", "data": data}
    job.save()
    run_jobs()
    job.refresh_from_db()
    assert opened == []
    assert (job.state, job.error) == (
        "failed", f"its arguments cannot be decoded as {kind}: kombu.exceptions.ContentDisallowed"
    )  # fmt: skip


def test_a_task_with_it_passes_the_checks(monkeypatch, configured) -> None:
    monkeypatch.setattr(durable.add, "serializer", NAME)
    assert not [each for each in check_celery_tasks(None) if each.id == "tailrace_jobs.E036"]
    configured(accept_content=["json"])
    assert [each.id for each in check_celery_tasks(None)] == ["tailrace_jobs.E036"]


@pytest.mark.parametrize("name", ["pickle", "yaml"])
def test_unsafe_serializers_are_refused_even_if_the_project_accepts_them(name, configured) -> None:
    configured(accept_content=["json", name])
    with pytest.raises(Exception, match=f"has the serializer '{name}'"):
        durable.add.apply_async((1,), serializer=name)
    assert not Job.objects.exists()
    assert current_app.conf.accept_content == ["json", name]
