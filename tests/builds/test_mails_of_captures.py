"""A replay of the sample backend's story: who is mailed what, by workers that are killed."""

import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.db.models.functions import Now

from domains.builds.sample.story import story
from events import clock as events_clock
from events.models import Event
from jobs import rescue, tick
from jobs.models import Attempt, Job
from subscriptions.audience import audiences
from subscriptions.models import GroupAddress
from subscriptions.recall import recall
from tests.kit import empty_broker, wait_until, worker
from tests.servers.smtp import MailServer, mail_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.broker, pytest.mark.slow]
PEOPLE = ("alice", "bob", "carol", "dave", "erin", "root")
KILLS = 10


@pytest.fixture
def people() -> None:
    for name in PEOPLE:
        User.objects.create_user(name, f"{name}@example.org")
    team = Group.objects.create(name="factory-team")
    GroupAddress.objects.create(group=team, email="team@example.org")


def address_of(recipient: str) -> str:
    kind, _, number = recipient.partition(":")
    if kind == "user":
        return User.objects.get(pk=number).email
    return GroupAddress.objects.get(pk=number).email


def owed(events: list[Event]) -> dict[tuple[int, str], str]:
    """By event and recipient: the address, as the audience names them."""
    heard = [one for one in audiences(map(recall, events)) if one.channel == "mail"]
    return {(one.event_id, one.recipient): address_of(one.recipient) for one in heard}


def job_of(message_id: str) -> int:
    found = re.match(r"<job\.(\d+)\.", message_id)
    assert found, message_id
    return int(found.group(1))


def kill_while_it_mails(env: dict[str, str], server: MailServer, log: Path) -> None:
    """Start a worker for mails, and kill it with its children when some have gone out."""
    with worker(env, ["subscriptions.mail"], log=log) as one:
        before = len(server.received)
        pending = Job.objects.filter(handler="subscriptions.mail", state="pending")

        def enough() -> bool:
            tick.tick()
            return len(server.received) >= before + 3 or not pending.exists()

        wait_until(enough, 30)
        one.kill()
    # Its processes are dead: nobody will settle what it had in hand. The lease need not be waited
    # for, and the clock cannot be stepped, which the workers do not share.
    Job.objects.running().update(lease_until=Now() - timedelta(seconds=1))
    rescue.rescue()


def test_each_mail_that_the_audience_names_comes_once_though_workers_are_killed(
    backend, poll: Callable, run_jobs: Callable, clock, people, settings, process_env, tmp_path
) -> None:
    settings.MAIL_BURST = 1000
    for type, values, _round in islice(story(0), 1000):
        backend.notify(type, values)
    poll()
    for _ in range(3):
        run_jobs("builds.update_backend_infos")
        clock.step(5)
    events_clock.offset = 0.0
    events = list(Event.objects.filter(type__startswith="builds.").order_by("id"))
    expected = owed(events)
    assert len(expected) > 60
    assert len({event for event, _who in expected}) > 20
    run_jobs("subscriptions.notify")
    empty_broker()
    jobs = Job.objects.filter(handler="subscriptions.mail")
    assert set(jobs.values_list("event_id", "routing_key")) == set(expected)
    with mail_server() as server:
        env = process_env | {"EMAIL_URL": server.url}
        server.seconds_after_data = 0.02
        for number in range(KILLS):
            kill_while_it_mails(env, server, tmp_path / f"worker{number}.log")
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        clock.step(7200)
        run_jobs("subscriptions.mail")
    assert set(jobs.values_list("state", flat=True)) == {"completed"}
    sent = Counter(one.message["Message-ID"] for one in server.received)
    by_job = {job.pk: job for job in jobs}
    assert {job_of(id) for id in sent} == set(by_job)
    assert len(sent) == len(expected), "one Message-ID per job, however often it was sent"
    for one in server.received:
        job = by_job[job_of(one.message["Message-ID"])]
        assert one.recipients == [expected[job.event_id or 0, job.routing_key]]
        assert one.message["References"] == one.message["In-Reply-To"]
        assert one.message["List-Id"].strip()
        is_user = job.routing_key.startswith("user:")
        assert bool(one.message["List-Unsubscribe"]) is is_user
    twice = {job_of(id) for id, count in sent.items() if count > 1}
    lost = set(Attempt.objects.filter(outcome="lost").values_list("job_id", flat=True))
    assert twice <= lost, "only what was cut between the 250 and its settlement"
    assert lost, "no kill met a mail on its way"
