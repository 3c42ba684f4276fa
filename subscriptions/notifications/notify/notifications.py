"""Write the notifications of recipients, and enqueue the jobs that deliver them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from django.db import transaction

from tailrace.db.query import execute
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.jobs.enqueue import enqueue_many
from tailrace.subscriptions.types.channel import NewDelivery, all_channels
from tailrace.subscriptions.types.recipient import Recipient, RecipientKey

BATCH_SIZE = 1000
"""Rows of one INSERT: an event may have ten thousand recipients."""

_INSERT = """
INSERT INTO tailrace_subscriptions_notification (event_id, user_id, group_id, role)
SELECT * FROM unnest(%(event)s::bigint[], %(user)s::int[], %(group)s::int[], %(role)s::text[])
ON CONFLICT DO NOTHING
"""


@transaction.atomic
def notify_recipients(recipients: Sequence[Recipient]) -> None:
    """Write the notifications and enqueue the deliveries in one transaction; safe to repeat."""
    write_notifications(recipients)
    _enqueue_deliveries(recipients)


def write_notifications(recipients: Iterable[Recipient]) -> None:
    """Write one notification per event and recipient, with the role of the first channel."""
    first: dict[tuple[int, RecipientKey], Recipient] = {}
    for recipient in recipients:
        first.setdefault((recipient.event_id, recipient.key), recipient)
    # Always in the same order, so that two workers cannot deadlock.
    rows = sorted(first.values(), key=lambda row: (row.event_id, str(row.key)))
    for start in range(0, len(rows), BATCH_SIZE):
        batch = rows[start : start + BATCH_SIZE]
        execute(
            _INSERT,
            event=number_array(row.event_id for row in batch),
            user=number_array(row.user_id for row in batch),
            group=number_array(row.group_id for row in batch),
            role=text_array(row.role for row in batch),
        )


def _enqueue_deliveries(recipients: Sequence[Recipient]) -> None:
    ordered = sorted(recipients, key=lambda row: (row.channel, row.event_id, str(row.key)))
    for key, rows in groupby(ordered, key=lambda row: row.channel):
        channel = all_channels()[key]
        enqueue_many(channel.name, map(_job, channel.deliveries(rows)))


def _job(new: NewDelivery) -> Mapping[str, Any]:
    job: dict[str, Any] = {"event_id": new.recipient.event_id, "routing_key": new.routing_key}
    first = {"priority": 0} if new.recipient.urgent else {}
    return job | {"lane": new.lane} | first
