"""What a customer should do next: a short list, the most urgent first."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.urls import reverse

from tailrace.db import clock
from tailrace.domains.protection.models import (
    Exposure,
    PropertyChange,
    RemovalRequest,
    RemovalState,
    Severity,
    WatchedProperty,
    WatchlistItem,
)
from tailrace.domains.protection.services.removals.board import available_brokers, card_of

MOST_STEPS = 5
MOST_READ = 500
"""Maximum number of exposures that are counted, the newest first."""
RECENT = timedelta(days=30)
"""How long a change of a property is a step."""


@dataclass(frozen=True, slots=True)
class Step:
    text: str
    button: str
    address: str


def next_steps(user: User, *, is_served: bool) -> list[Step]:
    """Return at most MOST_STEPS steps. `is_served`: whether the user has an active plan."""
    steps = [_property_change(user), _exposures(user), _removal(user), _value(user)]
    if is_served:
        steps += [_property(user), _brokers(user)]
    return [step for step in steps if step][:MOST_STEPS]


def _property_change(user: User) -> Step | None:
    recent = PropertyChange.objects.select_related("property").filter(
        property__user=user, severity__gte=Severity.CRITICAL, noticed_at__gt=clock.now() - RECENT
    )
    change = recent.order_by("-pk").first()
    if change is None:
        return None
    address = reverse("protection:property", args=[change.property_id])
    return Step(f"Check the new documents about {change.property.title}.", "See them", address)


def _exposures(user: User) -> Step | None:
    newest = Exposure.objects.filter(user=user).order_by("-pk").values_list("state", flat=True)
    count = list(newest[:MOST_READ]).count(Exposure.State.NEW)
    if not count:
        return None
    what = "1 new exposure" if count == 1 else f"{count} new exposures"
    return Step(
        f"Follow the advice for {what} of your data, and mark what you have dealt with.",
        "Show new exposures",
        reverse("protection:exposures"),
    )


def _removal(user: User) -> Step | None:
    waiting = RemovalRequest.objects.filter(user=user, state=RemovalState.NEEDS_PERSON)
    row = waiting.order_by("-pk").first()
    if row is None:
        return None
    address = reverse("protection:removal", args=[row.pk])
    return Step(f"{card_of(row)['name']} needs your help to remove your data.", "Help", address)


def _value(user: User) -> Step | None:
    if WatchlistItem.objects.filter(user=user).exists():
        return None
    return Step(
        "Add the values to look up in leaks: your email addresses, phone numbers and user names.",
        "Add a value",
        reverse("protection:watchlist"),
    )


def _property(user: User) -> Step | None:
    if WatchedProperty.objects.filter(user=user).exists():
        return None
    address = reverse("protection:properties")
    return Step(
        "If you own a home in New York City, watch its public records.", "Watch a property", address
    )


def _brokers(user: User) -> Step | None:
    brokers = len(available_brokers(user))
    if not brokers:
        return None
    what = "1 data broker" if brokers == 1 else f"{brokers} data brokers"
    return Step(
        f"Ask {what} to remove your data.",
        "Choose brokers",
        f"{reverse('protection:removals')}#start",
    )
