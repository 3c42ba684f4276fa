"""The mails of the sample backend's activity, sent by workers that are killed."""

import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.db.models.functions import Now

from tailrace.db import clock as events_clock
from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.models import Attempt, Job
from tailrace.samples.builds.activity import activity
from tailrace.subscriptions.models import GroupAddress
from tailrace.subscriptions.notifications.audience.resolve import audiences
from tests.kit import empty_broker, wait_until, worker
from tests.servers.smtp import MailServer, mail_server

pytestmark = [
    pytest.mark.once,
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
]
LOGINS = ("alice", "bob", "carol", "dave", "erin", "root")


@pytest.fixture
def users() -> None:
    for name in LOGINS:
        User.objects.create_user(name, f"{name}@example.org")
    team = Group.objects.create(name="factory-team")
    GroupAddress.objects.create(group=team, email="team@example.org")


def address_of(recipient: str) -> str:
    kind, _, number = recipient.partition(":")
    if kind == "user":
        return User.objects.get(pk=number).email
    return GroupAddress.objects.get(pk=number).email


def expected_mails(events: list[Event]) -> dict[tuple[int, str], str]:
    """Return the addresses of the audience, by event and recipient."""
    recipients = audiences(map(Recorded.from_model, events))
    return {
        (recipient.event_id, str(recipient.key)): address_of(str(recipient.key))
        for recipient in recipients
        if recipient.channel == "mail"
    }


def job_of(message_id: str) -> int:
    match = re.match(r"<job\.(\d+)\.", message_id)
    assert match, message_id
    return int(match.group(1))


def kill_while_sending(env: dict[str, str], server: MailServer, log: Path) -> None:
    """Start a worker for mails, and kill it with its children after some were sent."""
    with worker(env, ["subscriptions.mail"], log=log) as process:
        before = len(server.received)
        pending = Job.objects.filter(handler="subscriptions.mail", state="pending")

        def enough() -> bool:
            tick.tick()
            return len(server.received) >= before + 3 or not pending.exists()

        wait_until(enough, 30)
        process.kill()
    # Its processes are dead, so its jobs will not be settled. The leases are ended here, because
    # the workers do not use the test's clock.
    Job.objects.running().update(lease_until=Now() - timedelta(seconds=1))
    rescue.rescue()


@pytest.mark.parametrize(
    ("kills", "events_sent"), [(2, 400), pytest.param(4, 1000, marks=pytest.mark.long)]
)
def test_each_mail_is_sent_once_though_workers_are_killed(
    kills: int,
    events_sent: int,
    backend,
    poll: Callable,
    run_jobs: Callable,
    clock,
    users,
    settings,
    process_env,
    tmp_path,
) -> None:
    settings.MAIL_BURST = 1000
    settings.OBS_LOG_TAIL_BYTES = 0  # no worker here fetches logs
    for type, values, _round in islice(activity(0), events_sent):
        backend.notify(type, values)
    poll()
    for _ in range(3):
        run_jobs("builds.update_backend_infos")
        clock.step(5)
    events_clock.offset = 0.0
    events = list(Event.objects.filter(type__startswith="builds.").order_by("id"))
    expected = expected_mails(events)
    assert len(expected) > 20
    assert len({event for event, _recipient in expected}) > 10
    run_jobs("subscriptions.notify")
    empty_broker()
    jobs = Job.objects.filter(handler="subscriptions.mail")
    assert set(jobs.values_list("event_id", "routing_key")) == set(expected)
    with mail_server() as server:
        env = process_env | {"EMAIL_URL": server.url, "OBS_LOG_TAIL_BYTES": "0"}
        server.seconds_after_data = 0.02
        for number in range(kills):
            kill_while_sending(env, server, tmp_path / f"worker{number}.log")
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        clock.step(7200)
        run_jobs("subscriptions.mail")
    assert set(jobs.values_list("state", flat=True)) == {"completed"}
    mails = Counter(mail.message["Message-ID"] for mail in server.received)
    by_job = {job.pk: job for job in jobs}
    assert {job_of(id) for id in mails} == set(by_job)
    assert len(mails) == len(expected), "one Message-ID per job, however often it was sent"
    for mail in server.received:
        job = by_job[job_of(mail.message["Message-ID"])]
        assert mail.recipients == [expected[job.event_id or 0, job.routing_key]]
        assert mail.message["References"] == mail.message["In-Reply-To"]
        assert mail.message["List-Id"].strip()
        is_user = job.routing_key.startswith("user:")
        assert bool(mail.message["List-Unsubscribe"]) is is_user
    twice = {job_of(id) for id, count in mails.items() if count > 1}
    lost = set(Attempt.objects.filter(outcome="lost").values_list("job_id", flat=True))
    assert twice <= lost, "only mails whose job was killed before it was settled"
    assert lost, "no kill interrupted a mail"
