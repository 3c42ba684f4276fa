"""What the tests of protection share."""

from django.contrib.auth.models import User

from db.clock import now
from domains.protection import watchlist
from domains.protection.models import (
    Alert,
    AlertPause,
    Breach,
    Exposure,
    ItemScan,
    Severity,
    WatchlistItem,
)
from domains.protection.removals import decisions as removals
from domains.protection.removals.person import Person

SSN = "219-09-9999"


def fill_protection(user: User) -> Exposure:
    """Store something of the user in every table of protection; return an exposure."""
    item = watchlist.add(user.pk, "email", f"{user.username}@example.org")
    watchlist.add(user.pk, "ssn", SSN)
    ItemScan.objects.create(item=item, source="hibp_breaches", scanned_at=now())
    breach, _new = Breach.objects.get_or_create(source="hibp_breaches", name="Adobe", title="Adobe")
    severity = Severity.CRITICAL
    about = {"user": user, "kind": "exposure", "source": "hibp_breaches", "severity": severity}
    removals.start(user, ["sample-letter"], Person(name=user.username, email="a@b.org", city="x"))
    Alert.objects.create(**about)
    AlertPause.objects.create(**about, until=now())
    return Exposure.objects.create(user=user, item=item, breach=breach, severity=severity)


def items_of(user: User) -> list[WatchlistItem]:
    return list(WatchlistItem.objects.filter(user=user).order_by("pk"))
