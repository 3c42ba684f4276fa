"""What the page of a subscription's row tells beside it: what it brought, and would bring yet."""

from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from events import clock
from subscriptions.models import EventSubscription
from subscriptions.preview import preview
from subscriptions.retro import retro

DAYS = 7.0


def brought(row: EventSubscription, days: str) -> dict[str, Any]:
    """Return what the template shows: the events of the last days, and once `days` is given, what
    a retro-delivery would owe."""
    found: dict[str, Any] = {"brought": preview(row, DAYS), "days": days or f"{DAYS:g}"}
    if days:
        try:
            owed = retro(row, days_ago(days)).owed
            found |= {"retro_owed": deliveries(owed, "would be"), "retro_any": owed > 0}
        except ValueError as error:
            found["retro_error"] = str(error)
    return found


def days_ago(text: str) -> datetime:
    """Return the time so many days ago; ValueError for what is no number above 0."""
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not (isfinite(days) and 0 < days <= 3650):
        raise ValueError(f"{text!r} is no number of days that is above 0, such as 7")
    return clock.now() - timedelta(days=days)


def deliveries(count: int, verb: str = "") -> str:
    """Return `1 delivery is` or `2 deliveries are`, or with the verb that is given."""
    noun = "delivery" if count == 1 else "deliveries"
    return f"{count} {noun} {verb or ('is' if count == 1 else 'are')}"
