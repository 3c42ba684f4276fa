"""Several mail servers at once: who gets which mail, and what one that hangs or is away does."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.mail import EmailMessage
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.config.platform_settings.variables import mail_settings
from tailrace.db import clock as events_clock
from tailrace.events.readers import Readers
from tailrace.jobs.destinations import breaker
from tailrace.jobs.destinations.delivery import DeliveryResult, DeliveryStatus
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Attempt, Breaker, Job
from tailrace.subscriptions.channels.mail import mail_server as mail_server_module
from tailrace.subscriptions.channels.mail import transport
from tailrace.subscriptions.channels.mail.channel import Mail
from tailrace.subscriptions.channels.mail.mail_handler import PLACES
from tailrace.subscriptions.models import Digest, DigestItem
from tests.kit import PATIENCE, wait_until, worker
from tests.servers.smtp import MailServer, free_port, mail_server
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, readers

pytestmark = pytest.mark.django_db(transaction=True)
MAIL = "subscriptions.mail"


@pytest.fixture
def other(smtp: MailServer, settings) -> Iterator[MailServer]:
    """The second mail server."""
    with mail_server() as server:
        settings.MORE_MAIL_SERVERS = [server.settings()]
        yield server


def owe_mails(count: int) -> None:
    """Publish an event of which so many people are to be mailed."""
    assign_role(FIRST, *(person(f"p{number}") for number in range(count)))
    publish_event()


def mails() -> list[Job]:
    return list(Job.objects.filter(handler=MAIL).order_by("id"))


def servers_of(jobs: list[Job]) -> dict[int, str]:
    return {job.pk: job.result["server"] for job in jobs if job.result}


def assert_each_sent_once(*servers: MailServer) -> None:
    jobs = mails()
    assert {job.state for job in jobs} == {"completed"}
    received = [mail.message["Message-ID"] for server in servers for mail in server.received]
    assert sorted(received) == sorted(job.result["message_id"] for job in jobs if job.result)


def test_mails_are_spread_evenly_and_each_keeps_its_server(run_jobs, smtp, other) -> None:
    owe_mails(60)
    run_jobs("subscriptions.notify", MAIL)
    assert_each_sent_once(smtp, other)
    first = servers_of(mails())
    counts = Counter(first.values())
    assert set(counts) == {smtp.name, other.name}
    assert min(counts.values()) > 12
    assert (smtp.connections, other.connections) == (1, 1)
    Job.objects.filter(handler=MAIL).update(
        state="pending", finished_at=None, result=None, done_on=None
    )
    run_jobs(MAIL)
    assert servers_of(mails()) == first


def test_the_mails_of_a_server_that_is_away_go_to_the_other(
    run_jobs, smtp, settings, clock
) -> None:
    port = free_port()
    settings.MORE_MAIL_SERVERS = [smtp.settings() | {"EMAIL_PORT": port}]
    owe_mails(20)
    run_jobs("subscriptions.notify", MAIL)
    away = Breaker.objects.get()
    assert away.name == f"subscriptions.mail:127.0.0.1:{port}"
    assert f"the mail server 127.0.0.1:{port} is unavailable" in away.last_error
    clock.step(2)
    run_jobs(MAIL)
    assert_each_sent_once(smtp)
    assert {job.attempt for job in mails()} == {1}, "none was charged for the server that is away"
    assert set(servers_of(mails()).values()) == {smtp.name}
    reasons = Attempt.objects.filter(job__handler=MAIL).values_list("message", flat=True)
    assert any(f"127.0.0.1:{port} is unavailable" in reason for reason in reasons)
    with mail_server(port) as back:
        clock.step(breaker.LONGEST_SECONDS)
        for expected in ("the probe", "its share"):
            publish_event()
            run_jobs("subscriptions.notify", MAIL)
            assert_each_sent_once(smtp, back)
            assert (len(back.received) == 1) is (expected == "the probe")
        transport.close()


def test_a_server_that_hangs_delays_its_own_mails_only(
    run_jobs, smtp, other, settings, clock, monkeypatch
) -> None:
    """It takes mails and never answers: each costs an attempt, and five open its breaker. After
    that it gets no mail, and the other server gets all that were not tried."""
    monkeypatch.setattr(mail_server_module, "LONGEST_WAIT", 0.2)
    monkeypatch.setattr(breaker, "SHORTEST_SECONDS", breaker.LONGEST_SECONDS)  # no probe until then
    settings.MORE_MAIL_SERVERS = [other.settings() | {"EMAIL_TIMEOUT": 0.5}]
    other.seconds_after_data = 3600
    owe_mails(40)
    run_jobs("subscriptions.notify", MAIL)
    untried, opened = Job.objects.filter(handler=MAIL, attempt=0), Breaker.objects.exclude(opened=0)
    while untried.exists() and not opened.exists():
        failures = sum(Breaker.objects.values_list("failures", flat=True))
        assert failures < breaker.ERRORS_TO_OPEN
        clock.step(2)
        run_jobs(MAIL)
    assert opened.get().name == f"subscriptions.mail:{other.name}"
    hung = {job.pk for job in mails() if job.attempt and job.result is None}
    while untried.exists():
        clock.step(2)
        run_jobs(MAIL)
    late = [job for job in mails() if job.state == "pending"]
    assert late
    assert {job.pk for job in late} <= hung, "no mail is sent to it after its breaker opened"
    assert {Mail().destinations(job)[0] for job in late} == {other.name}  # type: ignore[arg-type]
    assert all(f"the mail server {other.name} did not accept the mail" in job.error for job in late)
    assert len(smtp.received) == 40 - len(late)
    assert len(other.received) == 0
    reasons = Attempt.objects.filter(outcome="snoozed").values_list("message", flat=True)
    assert f"the mail server {other.name} is slow" in set(reasons)
    # It is well again, and may take as long for a mail as a busy machine takes.
    other.seconds_after_data = 0
    settings.MORE_MAIL_SERVERS = [other.settings()]
    monkeypatch.setattr(mail_server_module, "LONGEST_WAIT", PATIENCE)
    clock.step(3600)
    run_jobs(MAIL)
    assert_each_sent_once(smtp, other)


def test_a_server_has_djangos_defaults_and_its_name_no_password(smtp, settings) -> None:
    settings.MORE_MAIL_SERVERS = [mail_settings("smtp+tls://me:secret@two.example.org")]
    options = transport.options_by_name()
    assert list(options) == [smtp.name, "two.example.org:25"]
    second = options["two.example.org:25"]
    assert (second["username"], second["password"], second["use_tls"]) == ("me", "secret", True)
    assert (second["timeout"], second["use_ssl"]) == (30, False)


def test_one_that_has_enough_mails_is_spared(smtp, other) -> None:
    """By one process: what comes beyond goes to the other one."""
    other.seconds_after_data = 3600
    hangs = transport.server(other.name)

    async def send() -> None:
        tasks = [asyncio.create_task(hangs.send(mail_to("a"))) for _ in range(21)]
        while hangs.waiting() < PLACES:
            await asyncio.sleep(0.01)
        handler = Mail()
        assert handler.is_full(other.name, 0)
        assert handler.is_full(smtp.name, PLACES)
        assert not handler.is_full(smtp.name, PLACES - 1)
        for task in tasks:
            task.cancel()

    asyncio.run(send())


def mail_to(name: str) -> EmailMessage:
    address = f"{name}@example.org"
    return EmailMessage(name, "", to=[address], headers={"Message-ID": f"<{address}>"})


def test_a_cancelled_mail_is_not_sent_and_frees_its_server(smtp: MailServer, settings) -> None:
    settings.EMAIL_TIMEOUT = 60
    smtp.seconds_after_data = 3600
    server = transport.server(smtp.name)

    async def send() -> list[DeliveryResult]:
        sending = asyncio.create_task(server.send(mail_to("sending")))
        while not smtp.transports:
            await asyncio.sleep(0.01)
        waits = asyncio.create_task(server.send(mail_to("waits")))
        cancelled = asyncio.create_task(server.send(mail_to("cancelled")))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.sleep(0.05)
        smtp.seconds_after_data = 0
        sending.cancel()
        return [await waits, await transport.server(smtp.name).send(mail_to("next"))]

    began = time.monotonic()
    results = asyncio.run(send())
    assert time.monotonic() - began < 30, "not after EMAIL_TIMEOUT"
    assert [result.status for result in results] == [DeliveryStatus.NOT_TRIED, DeliveryStatus.SENT]
    assert smtp.addressed() == ["next@example.org"]
    wait_until(smtp.transports[0].is_closing, what="the end of the first connection")


def test_digests_and_mails_share_the_breaker_and_its_end(run_jobs, smtp, settings, clock) -> None:
    settings.EMAIL_PORT = free_port()
    ann = person("ann")
    assign_role(FIRST, ann)
    event = publish_event()
    run_jobs("subscriptions.notify", MAIL)
    digest, later = (
        Digest.objects.create(user=ann, pace="hourly", window_end=events_clock.now() + in_future)
        for in_future in (timedelta(0), timedelta(days=1))
    )
    DigestItem.objects.create(digest=digest, event_id=event.id, role=FIRST)
    jobs = [
        enqueue("subscriptions.digest", {"digest": each.pk}, due_at=each.window_end)
        for each in (digest, later)
    ]
    run_jobs("subscriptions.digest")
    assert "the circuit breaker of 127.0.0.1:" in Job.objects.get(pk=jobs[0]).error
    with mail_server(settings.EMAIL_PORT) as back:
        clock.step(3600)
        Job.objects.filter(handler=MAIL).update(due_at=events_clock.now() + timedelta(hours=3))
        run_jobs("subscriptions.digest")
        assert Job.objects.get(pk=jobs[0]).result["events"] == 1
        assert Job.objects.get(pk=jobs[1]).due_at == later.window_end, "it waited for its window"
        run_jobs(MAIL)
        assert len(back.received) == 2
        transport.close()


def test_a_batch_costs_as_many_statements_as_one_mail(run_jobs, smtp: MailServer) -> None:
    people = [person(f"p{number}") for number in range(16)]
    readers["hidden"] = Readers.of(user.username for user in people)
    counts = []
    for number, recipients in enumerate((people[:2], people)):
        assign_role(FIRST, *recipients)
        publish_event(payload={"title": "hidden"})
        run_jobs("subscriptions.notify")
        with CaptureQueriesContext(connection) as queries:
            run_jobs(MAIL)
        counts.append(len(queries))
        assert len(smtp.received) == (2, 18)[number]
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_a_worker_ends_in_the_middle_of_mails_to_a_server_that_hangs(
    run_jobs, smtp, other, process_env, tmp_path: Path
) -> None:
    other.seconds_after_data = 3600
    owe_mails(40)
    run_jobs("subscriptions.notify")
    env = process_env | {
        "EMAIL_URL": f"{smtp.url}, {other.url}",
        "SHUTDOWN_TIMEOUT": "1",
        "DJANGO_SETTINGS_MODULE": "tests.subscriptions.sample_app.site",
    }

    def completed() -> int:
        tick.tick()
        return sum(job.state == "completed" for job in mails())

    with worker(env, [MAIL], log=tmp_path / "first.log") as first:
        wait_until(lambda: other.transports and completed() > 8, what="those of the other server")
        first.signal(signal.SIGTERM)
        first.process.wait(PATIENCE)
    assert set(Job.objects.filter(handler=MAIL).values_list("state", "attempt")) == {
        ("completed", 1),
        ("pending", 0),
    }
    assert (smtp.connections, other.connections, other.received) == (1, 1, [])
    other.seconds_after_data = 0
    run_jobs(MAIL)
    assert completed() == 40
    assert_each_sent_once(smtp, other)
