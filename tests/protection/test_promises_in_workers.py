"""What scans promise, shown by two real workers that share no more than database and broker."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Max

from tailrace.db.query import database_now
from tailrace.domains.protection.alerts.raising import NOTIFICATIONS
from tailrace.domains.protection.models import Alert, AlertPause, Exposure, ItemScan
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.domains.protection.services.watchlist import items
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Attempt, Bucket, Job
from tailrace.net.sample_server import Response
from tailrace.subscriptions.channels.push import devices
from tailrace.subscriptions.models import Device
from tests.kit import wait_until, worker
from tests.protection.hometitle import kit as hometitle
from tests.protection.hometitle.conftest import soda
from tests.protection.kit import SSN, customer
from tests.protection.test_no_ssn_anywhere import FORMS, all_keys, all_rows
from tests.servers.browser import Browser
from tests.servers.hibp import HibpService, error, make_breach
from tests.servers.smtp import MailServer
from tests.servers.soda import SodaServer
from tests.servers.web import ReceivedRequest, serving

__all__ = ["soda"]
LOCAL = "127.0.0.0/8"
# `once`: it looks into Redis for what the broker has kept.
pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True), pytest.mark.slow]
QUEUES = [
    SCAN,
    hometitle.SCAN,
    NOTIFICATIONS,
    "subscriptions.notify",
    "subscriptions.mail",
    "subscriptions.web",
    "subscriptions.push",
]


class Provider:
    """Have I Been Pwned, which refuses one request if `refuses` is set; it notes all times."""

    def __init__(self, service: HibpService) -> None:
        self.service = service
        self.refuses = False
        self.refused_at = 0.0
        self.asked_at: list[float] = []
        self.held: threading.Event | None = None
        """Requests are answered once it is set, but those with `passes` in their path at once."""
        self.passes = "nobody"
        self.holding: list[str] = []
        self._lock = threading.Lock()

    def respond(self, request: ReceivedRequest) -> Response:
        with self._lock:
            if self.refuses:
                self.refuses, self.refused_at = False, time.monotonic()
                return error(429, "Rate limit is exceeded.", **{"retry-after": "2"})
            self.asked_at.append(time.monotonic())
        if held := self.held:
            self.holding.append(request.path)
            while not held.wait(0.02) and self.passes not in request.path:
                pass
        return self.service.respond(request)


@pytest.fixture
def provider(hibp: HibpService) -> Iterator[Provider]:
    provider = Provider(hibp)
    with serving(provider.respond) as server:
        hibp.url = server.url
        yield provider


@pytest.fixture
def env(process_env, provider: Provider, soda: SodaServer, smtp: MailServer) -> dict[str, str]:
    """The environment of workers that ask the local services."""
    return process_env | {
        "PROTECTION_HIBP_URL": provider.service.url,
        "PROTECTION_HIBP_KEY": provider.service.key,
        "PROTECTION_HIBP_PER_MINUTE": "60000",
        "PROTECTION_SODA_URL": soda.url,
        "PROTECTION_SODA_TOKEN": soda.token,
        "PROTECTION_SODA_PER_MINUTE": "60000",
        "EMAIL_URL": smtp.url,
        "WEBHOOK_ALLOWED_NETWORKS": LOCAL,
    }


@pytest.mark.long
def test_scans_keep_their_promises(env, provider, soda, smtp, settings, tmp_path: Path) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = [LOCAL]
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    with worker(env, QUEUES, log=logs[0]), worker(env, QUEUES, log=logs[1]):
        a_second_scan_makes_nothing_new(provider.service)
        one_source_down_is_partial_and_asked_again_alone(provider.service)
        an_alert_pauses_the_next_unless_it_is_worse(provider.service)
        a_failing_scan_is_tried_four_times(provider.service)
        deeds_are_compared(soda)
        a_410_ends_the_subscription_of_a_browser(provider.service)
        a_429_pauses_both_workers(provider)
        wait_until(notices_are_sent, what="the notices")
        places = {
            "database": all_rows(),
            "broker": all_keys(),
            "logs": "\n".join(log.read_text(errors="replace") for log in logs),
            "mails": "\n".join(received.message.as_string() for received in smtp.received),
            "requests": repr(provider.service.requests),
        }
    for place, text in places.items():
        assert text, place
        assert [form for form in FORMS if form in text] == [], place


def notices_are_sent() -> bool:
    """Those that are due now; the others wait for the end of a pause."""
    live = Job.objects.filter(handler__in=QUEUES, state__in=["pending", "running"])
    return not live.filter(due_at__lte=database_now()).exists()


def person(name: str, *usernames: str) -> User:
    """Return a customer who watches usernames, and an SSN that must stand nowhere."""
    user = customer(name)
    for username in usernames or [name]:
        items.add(user.pk, "username", username)
    items.add(user.pk, "ssn", SSN)
    return user


def scanned(user: User, handler: str = SCAN, **payload: object) -> Job:
    """Let a worker scan; return the job as it ended, or waits for its next attempt."""
    return ended(enqueue(handler, {"account": user.pk, **payload}))


def ended(id: int | None) -> Job:
    def rest() -> Job | None:
        job = Job.objects.get(pk=id)
        is_over = job.finished_at is not None or (job.state == "pending" and job.claim_no)
        return job if is_over else None

    job: Job = wait_until(rest, what="the scan")
    return job


def new_exposures(user: User) -> int:
    """Let a worker scan; return how many exposures it recorded."""
    result: Any = scanned(user).result
    return int(result["new_exposures"])


def counts(user: User) -> tuple[int, int]:
    """How many exposures and alerts there are of the user."""
    return Exposure.objects.filter(user=user).count(), Alert.objects.filter(user=user).count()


def a_second_scan_makes_nothing_new(hibp: HibpService) -> None:
    ann = person("ann", "ann", "ann2")
    hibp.add(make_breach("Adobe"), "ann", "ann2")
    assert new_exposures(ann) == 2
    before = ItemScan.objects.filter(item__user=ann).aggregate(at=Max("scanned_at"))
    assert counts(ann) == (2, 1)
    AlertPause.objects.filter(user=ann).delete()
    assert new_exposures(ann) == 0
    assert counts(ann) == (2, 1)
    assert before != ItemScan.objects.filter(item__user=ann).aggregate(at=Max("scanned_at"))


def one_source_down_is_partial_and_asked_again_alone(hibp: HibpService) -> None:
    bob = customer("bob")
    items.add(bob.pk, "email", "bob@example.org")
    hibp.add(make_breach("Forum"), "bob@example.org")
    hibp.faults["/pasteaccount"] = Response(500)
    result: Any = scanned(bob).result
    assert (result["outcome"], result["new_exposures"]) == ("partial", 1)
    hibp.faults.clear()
    hibp.requests.clear()
    follow_up = Job.objects.get(handler=SCAN, lane=str(bob.pk), state="pending")
    due_now(follow_up)
    result = ended(follow_up.pk).result
    assert result["outcome"] == "complete"
    assert [request.path for request in hibp.requests] == ["/pasteaccount/bob%40example.org"]


def an_alert_pauses_the_next_unless_it_is_worse(hibp: HibpService) -> None:
    cat = person("cat")
    hibp.add(make_breach("Names", "Usernames"), "cat")
    scanned(cat)
    hibp.add(make_breach("More names", "Usernames"), "cat")
    scanned(cat)
    assert counts(cat) == (2, 1), "a second one within 24 hours"
    hibp.add(make_breach("Secrets", "Passwords"), "cat")
    scanned(cat)
    assert counts(cat) == (3, 2), "a worse one"
    [pause] = AlertPause.objects.filter(user=cat)
    last = Alert.objects.filter(user=cat).latest("pk")
    assert (pause.until - last.raised_at).total_seconds() == pytest.approx(86_400, abs=1)
    AlertPause.objects.filter(user=cat).update(until=last.raised_at)
    hibp.add(make_breach("Old names", "Usernames"), "cat")
    scanned(cat)
    assert counts(cat) == (4, 3), "one after 24 hours"


def a_failing_scan_is_tried_four_times(hibp: HibpService) -> None:
    dan = person("dan")
    hibp.faults["/breachedaccount/dan"] = Response(500)
    job = scanned(dan, sources=["hibp_breaches"])
    for attempt, wait in enumerate((60, 300, 900), start=1):
        last = Attempt.objects.filter(job=job).latest("claim_no")
        assert (job.state, job.attempt, last.claim_no) == ("pending", attempt, attempt)
        seconds = (job.due_at - last.finished_at).total_seconds()
        assert 0.79 * wait < seconds < 1.21 * wait
        due_now(job)
        attempts = Attempt.objects.filter(job=job, claim_no=attempt + 1)
        wait_until(attempts.exists, what="the next attempt")
        job = ended(job.pk)
    assert (job.state, job.attempt, job.claim_no) == ("failed", 4, 4)
    assert hibp.asked("breachedaccount").count("dan") == 4
    assert not Job.objects.filter(handler=SCAN, lane=str(dan.pk), state="pending").exists()


def due_now(job: Job) -> None:
    """Let the time until the next attempt be over."""
    Job.objects.filter(pk=job.pk).update(due_at=job.created_at)


def deeds_are_compared(soda: SodaServer) -> None:
    eve = customer("eve")
    hometitle.add(eve)
    soda.deed("1", ["SMITH, JOHN", "SMITH, MARY"])
    for names, alerts in (((), 0), (("MARY SMITH", "JOHN SMITH"), 0), (("THIEF, TOM",), 1)):
        if names:
            soda.rename_parties("1", 2, *names)
        result: Any = scanned(eve, hometitle.SCAN).result
        assert result["alerts"] == alerts
    assert hometitle.changes() == [("ownership_transfer", "critical", "1")]
    assert counts(eve) == (0, 1)


def a_410_ends_the_subscription_of_a_browser(hibp: HibpService) -> None:
    gil, browser = person("gil"), Browser()
    with serving(lambda request: Response(410)) as service:
        device = devices.add(gil, service.url, browser.p256dh, browser.auth)
        for name, data in (("Club", "Usernames, emails"), ("Bank", "Passwords")):
            hibp.add(make_breach(name, data), "gil")
            scanned(gil)
            wait_until(notices_are_sent, what="the notices")
            assert Device.objects.filter(pk=device.pk, gone_at__isnull=False).exists()
    assert Alert.objects.filter(user=gil).count() == 2
    assert len(service.requests) == 1, "nothing is sent there after the 410"


def a_429_pauses_both_workers(provider: Provider) -> None:
    """Scans in both workers wait for their first answer; one gets a 429 for its second request,
    and then the other wants to ask."""
    scans: dict[str, int] = {}
    provider.held = threading.Event()
    for number in range(20):
        name = f"fay{number}"
        id = enqueue(SCAN, {"account": person(name, f"{name}a", f"{name}b").pk})
        running = Job.objects.running().filter(pk=id)
        wait_until(lambda: len(provider.holding) > number, what="a scan")  # noqa: B023
        scans[running.get().worker.split(":")[1]] = running.get().pk
        if len(scans) == 2:
            break
    assert len(scans) == 2, "both workers scan"
    provider.refuses, provider.passes = True, "fay0a"
    paused = Bucket.objects.filter(name="protection:hibp:rate", tokens__lt=-500)
    wait_until(paused.exists, what="the pause")
    asked = len(provider.asked_at)
    held, provider.held = provider.held, None
    held.set()
    assert {ended(id).state for id in scans.values()} == {"completed"}
    assert min(provider.asked_at[asked:]) >= provider.refused_at + 2.0
