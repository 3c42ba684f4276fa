"""Check the metadata of depositions, hundreds in one transaction."""

import json
from collections.abc import Sequence

from django.db import transaction

from tailrace.db.prepared import query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.db.sql.plans import unindexed
from tailrace.domains.records.depositions.events import publish_about
from tailrace.domains.records.depositions.jobs_of import by_deposition, skip_others
from tailrace.domains.records.depositions.metadata import Problem, problems_of
from tailrace.domains.records.event_types import DepositionSubmitted, ValidationCompleted
from tailrace.jobs.handler import ClaimedJob, Handler

_READ = f"""
SELECT id, metadata::text FROM tailrace_records_deposition
WHERE id = ANY(%(ids)s::bigint[]) AND {unindexed("state")} = 'submitted' AND NOT is_deleted
"""
# Rows are locked in the order of their ids, so that two batches cannot deadlock.
_WRITE = f"""
WITH checked AS MATERIALIZED (
  SELECT d.id, coalesce(new.problems, '[]') AS problems
  FROM tailrace_records_deposition d
  LEFT JOIN unnest(%(invalid)s::bigint[], %(problems)s::jsonb[]) AS new (id, problems)
    ON new.id = d.id
  WHERE d.id = ANY(%(ids)s::bigint[]) AND {unindexed("d.state")} = 'submitted'
  ORDER BY d.id FOR UPDATE OF d
)
UPDATE tailrace_records_deposition d SET
  problems = checked.problems,
  state = CASE WHEN checked.problems = '[]' THEN 'valid' ELSE 'invalid' END
FROM checked WHERE d.id = checked.id
RETURNING d.id
"""


class ValidateDeposition(Handler):
    """Check the metadata of a deposition, and store the problems by field if it is invalid."""

    name = "records.validate_deposition"
    on = [DepositionSubmitted]
    batch_size = 100

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        job_of = by_deposition(jobs)
        ids = number_array(job_of)
        rows = query(_READ, ids=ids)
        problems: dict[int, list[Problem]] = {
            id: errors for id, metadata in rows if (errors := problems_of(json.loads(metadata)))
        }
        with transaction.atomic():
            written = query(
                _WRITE,
                ids=ids,
                invalid=number_array(problems),
                problems=text_array(json.dumps(errors) for errors in problems.values()),
            )
            changed = [id for (id,) in written]
            extra = {id: {"problems": len(problems.get(id, ()))} for id in changed}
            publish_about(ValidationCompleted, changed, job_of, extra)
        skip_others(job_of, changed)
