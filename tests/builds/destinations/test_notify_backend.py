import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations import breaker
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming.claim import Limits, claim
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.models import Attempt, Breaker
from tailrace.jobs.operations.replay import replay
from tests.builds.destinations.kit import NOTIFY, SECRET, commits, jobs_of, states
from tests.kit import at_once, verdicts_on
from tests.servers.rabbit import exchange
from tests.servers.web import ReceivedRequest, Response, closed_port, serving, silent_port

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bus.ndjson"


@pytest.fixture(autouse=True)
def file_bus(settings, path: Path) -> None:
    settings.BUS_WEBHOOK_SECRET = SECRET
    settings.BUS_BACKENDS = {"file": f"file://{path}"}


def announced(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_an_event_is_sent_once_with_its_keys_in_order(path: Path, run_jobs: Callable) -> None:
    (event,) = commits(comment="bump é", files="Added:\n  x\n")
    run_jobs(NOTIFY)
    run_jobs(NOTIFY)
    (line,) = announced(path)
    assert line["id"] == event.id
    assert line["key"] == "opensuse.obs.package.commit"
    assert list(line["body"]) == ["project", "package", "comment", "user", "files", "rev"]
    assert line["body"]["comment"] == "bump é"
    assert states([event]) == ["completed"]


def test_one_job_per_destination_if_the_type_has_a_bus_key(settings, path: Path) -> None:
    settings.BUS_BACKENDS = {"one": f"file://{path}", "two": f"file://{path}2"}
    (event,) = commits()
    (quiet,) = publish([NewEvent("builds.assignment_create", {
        "project": "p", "package": "q", "assignee": "carol"})])  # fmt: skip
    assert sorted(job.routing_key for job in jobs_of([event])) == ["one", "two"]
    assert jobs_of([quiet]) == []


def test_a_message_on_rabbitmq_has_the_events_id(settings, run_jobs: Callable) -> None:
    with exchange() as rabbit:
        settings.BUS_BACKENDS = {"rabbit": rabbit.url}
        events = commits(250)
        run_jobs(NOTIFY)
        ids = [int(message.properties["message_id"]) for message in rabbit.messages()]
    assert sorted(ids) == [event.id for event in events]
    assert set(states(events)) == {"completed"}


def test_a_destination_that_is_down_delays_only_its_own_jobs(
    settings, path: Path, run_jobs: Callable, clock
) -> None:
    settings.BUS_BACKENDS |= {"away": f"http://127.0.0.1:{closed_port()}/"}
    events = commits(30)
    run_jobs(NOTIFY)
    assert set(states(events, "file")) == {"completed"}
    assert set(states(events, "away")) == {"pending"}
    charged = [job.attempt for job in jobs_of(events, "away")]
    assert 1 <= sum(charged) <= 8, "those that met the failure, and not all that waited behind it"
    assert Breaker.objects.get().state_at(clock.now()) == "open"


def test_a_hanging_destination_does_not_starve_another(
    settings, path: Path, run_jobs: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailrace.domains.builds.destinations.http_bus.TOTAL_SECONDS", 1.0)
    with silent_port() as port:
        settings.BUS_BACKENDS |= {"hangs": f"http://127.0.0.1:{port}/"}
        events = commits(300)
        # One time-out opens the breaker for all of its jobs.
        at_once(1, lambda number: run_jobs(NOTIFY))
    assert {line["id"] for line in announced(path)} == {event.id for event in events}


def test_sending_continues_after_an_outage(settings, run_jobs: Callable, clock) -> None:
    answer = Response(503)
    with serving(lambda request: answer) as server:
        settings.BUS_BACKENDS = {"hook": server.url}
        events = commits(20)
        run_jobs(NOTIFY)
        assert "completed" not in states(events)
        answer = Response(204)
        for _ in range(4):
            clock.step(400)
            run_jobs(NOTIFY)
        assert set(states(events)) == {"completed"}
        ids = {int(request.headers["webhook-id"]) for request in server.requests}
        assert ids == {event.id for event in events}
    assert not Breaker.objects.exclude(failures=0, open_until=None).exists()


def test_half_open_lets_one_job_through(settings, run_jobs: Callable, clock) -> None:
    with serving(lambda request: Response(500)) as server:
        settings.BUS_BACKENDS = {"hook": server.url}
        commits(50)
        run_jobs(NOTIFY)
        tried = len(server.requests)
        clock.step(10_000)
        run_jobs(NOTIFY)
        assert len(server.requests) == tried + 1


def test_a_long_outage_uses_up_no_attempts(settings, run_jobs: Callable, clock) -> None:
    settings.BUS_BACKENDS = {"away": f"http://127.0.0.1:{closed_port()}/"}
    events = commits(3)
    for _ in range(40):
        run_jobs(NOTIFY)
        clock.step(600)
    assert set(states(events)) == {"pending"}
    assert max(job.attempt for job in jobs_of(events)) <= 2


@pytest.mark.parametrize(("hours", "most"), [(2, 8), pytest.param(8, 20, marks=pytest.mark.long)])
def test_a_long_outage_costs_few_claims(hours, most, settings, run_jobs: Callable, clock) -> None:
    settings.BUS_BACKENDS = {"hook": f"http://127.0.0.1:{closed_port()}/"}
    events = commits(200)
    for _ in range(hours * 12):  # in steps of five minutes
        run_jobs(NOTIFY)
        clock.step(300)
    claims = [job.claim_no for job in jobs_of(events)]
    assert sum(claims) / len(claims) < most
    with serving() as server:
        settings.BUS_BACKENDS = {"hook": server.url}
        clock.step(1200)
        run_jobs(NOTIFY)
    assert states(events).count("completed") >= 190, "all but those that were charged"


def test_a_poison_event_fails_alone_and_blocks_nobody(settings, run_jobs: Callable, clock) -> None:
    def respond(request: ReceivedRequest) -> Response:
        return Response(500 if b"POISON" in request.body else 200)

    with serving(respond) as server:
        settings.BUS_BACKENDS = {"hook": server.url}
        poison = commits(1, comment="POISON")
        others = commits(20)
        for _ in range(40):
            run_jobs(NOTIFY)
            clock.step(4400)
    assert set(states(others)) == {"completed"}
    assert states(poison) == ["failed"]


def test_a_rejected_message_fails_at_once_and_is_replayable(settings, run_jobs: Callable) -> None:
    answer = Response(410)
    with serving(lambda request: answer) as server:
        settings.BUS_BACKENDS = {"hook": server.url}
        events = commits(2)
        run_jobs(NOTIFY)
        assert states(events) == ["failed", "failed"]
        assert "answered 410" in jobs_of(events)[0].error
        answer = Response()
        assert len(replay([job.id for job in jobs_of(events)]).changed) == 2
        run_jobs(NOTIFY)
    assert states(events) == ["completed", "completed"]


def test_a_job_killed_before_settling_repeats_with_the_same_id(
    path: Path, run_jobs: Callable, clock
) -> None:
    (event,) = commits()
    handler = registry.get(NOTIFY)
    jobs = claim(handler, Limits(), 100)
    list(verdicts_on(jobs))  # the effect; and here the worker dies: nothing is settled
    assert states([event]) == ["running"]
    clock.step(handler.claim_timeout + 1)
    rescue.rescue(100)
    clock.step(60)
    run_jobs(NOTIFY)
    assert [line["id"] for line in announced(path)] == [event.id, event.id]
    assert states([event]) == ["completed"]


def test_a_missing_exchange_is_an_error_and_loses_nothing(
    settings, run_jobs: Callable, clock
) -> None:
    with exchange() as rabbit:
        settings.BUS_BACKENDS = {"rabbit": rabbit.url + "-later"}
        events = commits(3)
        run_jobs(NOTIFY)
        assert set(states(events)) == {"pending"}
        messages = list(Attempt.objects.values_list("message", flat=True))
        assert any("must exist" in message for message in messages)
        assert "guest:guest" not in "".join(messages)
        rabbit.channel.exchange_declare(
            f"{rabbit.name}-later", "topic", durable=True, auto_delete=False
        )
        rabbit.channel.queue_bind(rabbit.queue, f"{rabbit.name}-later", "#")
        clock.step(900)
        run_jobs(NOTIFY)
        rabbit.channel.exchange_delete(f"{rabbit.name}-later")
        assert len(rabbit.messages()) == 3
    assert set(states(events)) == {"completed"}


def test_a_removed_destination_fails_with_its_name(settings, run_jobs: Callable) -> None:
    events = commits()
    settings.BUS_BACKENDS = {"files": "file:///tmp/other"}
    run_jobs(NOTIFY)
    assert states(events) == ["failed"]
    assert "has no bus 'file'; did you mean 'files'?" in jobs_of(events)[0].error


def test_a_missing_secret_postpones_the_jobs_with_the_reason(settings, run_jobs: Callable) -> None:
    settings.BUS_WEBHOOK_SECRET = ""
    settings.BUS_BACKENDS = {"hook": "https://hooks.example.org/"}
    events = commits()
    run_jobs(NOTIFY)
    assert states(events) == ["pending"]
    assert "whsec_" in Breaker.objects.get().last_error


def test_a_breaker_that_opens_waits_longer_each_time(clock) -> None:
    waits = []
    for _ in range(8):
        probe = bool(waits)
        waits.append(round(breaker.record_failure("x", "refused", at_once=True, probe=probe)))
        clock.step(waits[-1] + 1)
        assert breaker.check("x").probe
        assert breaker.check("x").wait, "one worker alone has the try"
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]
    breaker.record_success("x")
    assert breaker.check("x") == breaker.BreakerState()


def test_single_errors_open_a_breaker_only_in_a_row() -> None:
    assert [breaker.record_failure("x", "500", at_once=False) for _ in range(4)] == [0, 0, 0, 0]
    breaker.record_success("x")
    assert breaker.record_failure("x", "500", at_once=False) == 0
    assert [round(breaker.record_failure("x", "500", at_once=False)) for _ in range(5)] == [
        0,
        0,
        0,
        5,
        5,
    ]
