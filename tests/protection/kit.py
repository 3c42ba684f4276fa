"""What the tests of protection share."""

from collections.abc import Callable
from datetime import date
from html import unescape

from django.contrib.auth.models import User
from django.http import HttpResponse

from tailrace.db.clock import now
from tailrace.domains.protection.files import storage
from tailrace.domains.protection.handlers.reports_generate import FOLDER
from tailrace.domains.protection.models import (
    Alert,
    AlertPause,
    Breach,
    Exposure,
    ItemScan,
    PropertyChange,
    PropertySnapshot,
    Recording,
    Report,
    Severity,
    VoiceEnrolment,
    WatchlistItem,
)
from tailrace.domains.protection.services.properties import watch
from tailrace.domains.protection.services.properties.places import lot_of
from tailrace.domains.protection.services.removals import decisions as removals
from tailrace.domains.protection.services.removals.person import Person
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.domains.protection.services.watchlist import items
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import Plan, PlanJob
from tailrace.subscriptions.plans.enrolment import Enrolment, enrol

SSN = "219-09-9999"


def fill_protection(user: User) -> Exposure:
    """Store something of the user in every table of protection; return an exposure."""
    item = items.add(user.pk, "email", f"{user.username}@example.org")
    items.add(user.pk, "ssn", SSN)
    ItemScan.objects.create(item=item, source="hibp_breaches", scanned_at=now())
    breach, _new = Breach.objects.get_or_create(source="hibp_breaches", name="Adobe", title="Adobe")
    severity = Severity.CRITICAL
    about = {"user": user, "kind": "exposure", "source": "hibp_breaches", "severity": severity}
    subscribed(user)
    removals.start(user, ["sample-letter"], Person(name=user.username, email="a@b.org", city="x"))
    Alert.objects.create(**about)
    make_report(user)
    voice = storage.write("voices", b"RIFF", ".wav")
    VoiceEnrolment.objects.create(user=user, file=voice, seconds=1)
    Recording.objects.create(user=user, name="a.wav", file=storage.write("voices", b"RIFF", ".wav"))
    AlertPause.objects.create(**about, until=now())
    watch_property(user)
    return Exposure.objects.create(user=user, item=item, breach=breach, severity=severity)


def watch_property(user: User) -> PropertyChange:
    """Store a watched property with a change; return the change."""
    row = watch.add(user.pk, lot_of(3, 10, 20))
    PropertySnapshot.objects.create(property=row, hash="", read_at=now())
    kind, severity = "lien_filing", Severity.WARNING
    return PropertyChange.objects.create(
        property=row, document_id="1", kind=kind, severity=severity, details={"type": "MTGE"}
    )


def items_of(user: User) -> list[WatchlistItem]:
    return list(WatchlistItem.objects.filter(user=user).order_by("pk"))


def customer(name: str, plan: str = "premium") -> User:
    """Return a new user who is subscribed to a plan: premium has monitoring, others have not."""
    return subscribed(User.objects.create_user(name, f"{name}@example.test"), plan)


def subscribed(user: User, plan: str = "premium") -> User:
    """Subscribe the user to a plan, unless they have one; return the user."""
    defaults = {"monitoring": plan == "premium"}
    row, is_new = Plan.objects.get_or_create(name=plan, defaults=defaults)
    if is_new:
        PlanJob.objects.create(plan=row, handler=SCAN, frequency="daily", installed=True)
    enrol(Enrolment(user.pk, plan, anchor_day=10, time_zone="UTC"))
    return user


def scan(user: User, run_jobs: Callable[..., int]) -> Job:
    """Scan the user's watchlist, until nothing is due; return the job as it is then."""
    id = enqueue(SCAN, {"account": user.pk})
    run_jobs(SCAN)
    return Job.objects.get(pk=id)


def again(page: HttpResponse) -> str:
    """Return the address that the part of a page requests while work is under way."""
    requested = page.content.decode().split('hx-get="/protection/')[1]
    return "/protection/" + unescape(requested.split('"')[0])


def make_report(user: User) -> Report:
    """Store a report with a small file, without generating it."""
    return Report.objects.create(
        user=user,
        first_day=date(2026, 10, 1),
        last_day=date(2026, 10, 31),
        time_zone="UTC",
        file=storage.write(FOLDER, b"%PDF-1.7 of nothing", ".pdf"),
    )


def customer_who_watches_all(name: str) -> User:
    """A customer who watches a value of each kind; the email is `name@example.org`."""
    user = customer(name)
    for kind, text in (
        ("email", f"{name}@example.org"),
        ("phone", "+1 212 555 0100"),
        ("username", name),
        ("domain", "example.org"),
        ("ssn", SSN),
    ):
        items.add(user.pk, kind, text)
    return user
