"""Spans of OpenTelemetry: one tree per event, across processes; nothing where they are off."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.events.models import Event
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.net import tracing
from tests import forks
from tests.kit import PATIENCE, ROOT, empty_broker, wait_until, worker
from tests.sandbox.handlers import Waiting, Working
from tests.servers.otlp import ReceivedSpan, SpanReceiver, span_receiver

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "pa55word"
PUBLISH = """
import json, sys, time
import django; django.setup()
from tailrace.events.publish import NewEvent, publish
began = time.monotonic()
publish([NewEvent("test.happened", {"who": who, "tags": ["TAG"]}) for who in "ab"])
modules = sorted(
    name for name in sys.modules
    if name.startswith(("opentelemetry.sdk.trace", "opentelemetry.exporter"))
)  # redis imports what it finds of metrics
print(json.dumps([time.monotonic() - began, modules]), flush=True)
print(time.time())
"""


@pytest.fixture
def receiver() -> Iterator[SpanReceiver]:
    with span_receiver() as receiver:
        yield receiver


def publish(env: dict[str, str], **variables: str) -> tuple[float, list[str], float]:
    """Publish two events in a process of its own; return the seconds it took, what of
    OpenTelemetry the process had loaded, and the seconds that its end took."""
    settings = {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    done = forks.run(
        ["-c", PUBLISH.replace("TAG", SECRET)],
        cwd=ROOT, env=env | settings | variables,
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures, ended = done.stdout.splitlines()[-2:]
    seconds, modules = json.loads(figures)
    return seconds, modules, time.time() - float(ended)


def jobs_of(receiver: SpanReceiver, queue: str) -> list[ReceivedSpan]:
    return receiver.named(f"job {queue}")


@pytest.mark.slow
def test_the_spans_of_an_event_are_one_tree_across_processes(
    process_env, tmp_path: Path, receiver: SpanReceiver
) -> None:
    empty_broker()
    env = process_env | receiver.environment()
    queues = ["test.log", "test.keyed", "test.work", "test.waiting", "test.batch"]
    publish(env)
    enqueue(Working, {"do": "publish", "note": SECRET})
    enqueue(Working, {"do": "permanent", "note": SECRET})
    enqueue(Waiting, {"note": SECRET})
    ended = Job.objects.filter(handler__in=queues, finished_at__isnull=False)
    with worker(env, queues, log=tmp_path / "w.log", concurrency=2) as running:
        wait_until(lambda: ended.count() == 8)  # two events, three requests, and one more event
        assert running.stop() == 0
    wait_until(lambda: len(jobs_of(receiver, "test.log")) == 3)

    (published,) = [span for span in receiver.named("publish test.happened") if not span.parent]
    assert published.attributes["tailrace.events"] == 2
    caused = receiver.children(published)
    names = sorted(span.name for span in caused)
    assert names == ["job test.keyed"] * 2 + ["job test.log"] * 2
    for job in caused:
        assert (job.trace, job.service) == (published.trace, "tailrace-test")
        claim, run, settle = receiver.children(job)
        assert [claim.name, run.name, settle.name] == ["claim", "run", "settle"]
        assert job.start <= claim.start <= claim.end <= run.start <= run.end <= settle.end
        assert settle.end <= job.end
        assert job.attributes["tailrace.state"] == "completed"
        assert Event.objects.get(pk=job.attributes["tailrace.event.id"]).type == "test.happened"

    of_requests = {
        span.attributes["tailrace.state"]: span for span in jobs_of(receiver, "test.work")
    }
    _claim, run, _settle = receiver.children(of_requests["completed"])
    (published_by_handler,) = receiver.children(run)
    assert published_by_handler.name == "publish test.happened"
    assert [span.name for span in receiver.children(published_by_handler)] == ["job test.log"]
    failed = of_requests["failed"]
    assert failed.failed
    assert failed.attributes["error.type"] == "tailrace.jobs.handler.outcomes.Permanent"
    (waiting,) = jobs_of(receiver, "test.waiting")
    assert [span.name for span in receiver.children(waiting)] == ["claim", "run", "settle"]
    assert SECRET.encode() not in b"".join(receiver.bodies)


def test_without_the_variables_nothing_is_imported_or_recorded(process_env) -> None:
    _seconds, modules, _end = publish(process_env)
    assert modules == []
    assert set(Event.objects.values_list("trace_parent", flat=True)) == {""}


def test_a_sampler_that_takes_none_is_obeyed(process_env, receiver: SpanReceiver) -> None:
    publish(process_env, **receiver.environment(OTEL_TRACES_SAMPLER="always_off"))
    parents = Event.objects.values_list("trace_parent", flat=True)
    assert [int(parent[-2:], 16) & 1 for parent in parents] == [0, 0]
    assert receiver.spans == []


def test_a_receiver_that_hangs_delays_neither_publish_nor_the_end(
    process_env, receiver: SpanReceiver
) -> None:
    receiver.answers.clear()
    seconds, _modules, end_seconds = publish(
        process_env, **receiver.environment(OTEL_EXPORTER_OTLP_TIMEOUT="120")
    )
    assert Event.objects.count() == 2
    assert seconds < 25
    assert end_seconds < 25, "OpenTelemetry's own bound is 30 seconds"


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_SERVICE_NAME": "a"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "True"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_decide(variables: dict[str, Any], wanted: bool) -> None:
    assert tracing.is_wanted(variables) is wanted


def test_a_forked_child_has_an_exporter_of_its_own(process_env, receiver: SpanReceiver) -> None:
    code = (
        "import os; from tailrace.net import tracing;"
        "tracing.tracer().start_span('parent').end();"
        "child = os.fork();"
        "tracing.tracer().start_span('child' if not child else 'after').end();"
        "tracing.shut_down();"
        "os._exit(0) if not child else os.wait()"
    )
    done = forks.run(
        ["-c", code], cwd=ROOT, timeout=PATIENCE,
        env=os.environ | receiver.environment(OTEL_BSP_SCHEDULE_DELAY="60000"),
    )  # fmt: skip
    assert done.returncode == 0
    assert sorted(span.name for span in receiver.spans) == ["after", "child", "parent"]
