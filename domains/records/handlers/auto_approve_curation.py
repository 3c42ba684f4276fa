"""Approve valid depositions that need no decision of a curator."""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from tailrace.db.prepared import query
from tailrace.db.sql.arrays import number_array
from tailrace.db.sql.plans import unindexed
from tailrace.domains.records.depositions.events import publish_about
from tailrace.domains.records.depositions.jobs_of import by_deposition, skip_others
from tailrace.domains.records.depositions.submit import OF_EVENTS
from tailrace.domains.records.event_types import DepositionApproved, ValidationCompleted
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import ClaimedJob, Handler

# Withdrawals need no curator, as `withdraw` has checked the permission. Harvested depositions, and
# depositions that are made from events, need none either.
_APPROVE = f"""
WITH chosen AS MATERIALIZED (
  SELECT id FROM tailrace_records_deposition
  WHERE id = ANY(%(ids)s::bigint[]) AND {unindexed("state")} = 'valid'
    AND (%(all)s::bool OR is_deleted OR source_id IS NOT NULL
         OR starts_with(identifier, %(of_events)s::text))
  ORDER BY id FOR UPDATE
)
UPDATE tailrace_records_deposition d SET state = 'approved' FROM chosen WHERE d.id = chosen.id
RETURNING d.id
"""


class AutoApproveCuration(Handler):
    """Approve a valid deposition, unless a curator must decide (RECORDS_AUTO_APPROVE)."""

    name = "records.auto_approve_curation"
    on = [ValidationCompleted]
    batch_size = 100

    def wants(self, event: Recorded) -> bool:
        return not event.raw_payload["problems"]

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        job_of = by_deposition(jobs)
        with transaction.atomic():
            rows = query(
                _APPROVE,
                ids=number_array(job_of),
                all=settings.RECORDS_AUTO_APPROVE,
                of_events=OF_EVENTS,
            )
            changed = [id for (id,) in rows]
            publish_about(DepositionApproved, changed, job_of)
        skip_others(job_of, changed, {"valid": "the deposition waits for a curator"})
