"""Approve valid depositions that need no curator."""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from tailrace.db.arrays import number_array
from tailrace.db.plans import unindexed
from tailrace.db.prepared import query
from tailrace.domains.records.depositions.events import publish_about
from tailrace.domains.records.depositions.jobs_of import by_deposition, skip_others
from tailrace.domains.records.depositions.submit import OF_EVENTS
from tailrace.domains.records.event_types import DepositionApproved, ValidationCompleted
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import ClaimedJob, Handler

# Withdrawals need no curator: whoever may withdraw has been checked. Records of events need none.
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
    """Approve a valid deposition, unless it is to wait for a curator (RECORDS_AUTO_APPROVE)."""

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
        skip_others(job_of, changed, {"valid": "it waits for a curator"})
