"""Validate, approve and publish depositions, a hundred in one transaction; delete their files."""

import json
from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from pydantic import BaseModel

from tailrace.db import clock
from tailrace.db.query import prepared
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.db.sql.plans import unindexed
from tailrace.domains.records.depositions.batch_jobs import by_deposition, skip_unchanged
from tailrace.domains.records.depositions.deletion import DELETE_FILES
from tailrace.domains.records.depositions.events import publish_about
from tailrace.domains.records.depositions.metadata import Problem, problems_of
from tailrace.domains.records.depositions.storage import files
from tailrace.domains.records.depositions.submit import OF_EVENTS
from tailrace.domains.records.event_types import (
    SOURCE,
    DepositionApproved,
    DepositionSubmitted,
    RecordPublished,
    ValidationCompleted,
    submitter,
)
from tailrace.domains.records.models import DepositionFile
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Retry, Skip

_READ = f"""
SELECT id, metadata::text FROM tailrace_records_deposition
WHERE id = ANY(%(ids)s::bigint[]) AND {unindexed("state")} = 'submitted' AND NOT is_deleted
"""
# Rows are locked in the order of their ids, so that two batches cannot deadlock.
_VALIDATE = f"""
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


class _Step(Handler):
    """A step of the chain: a hundred depositions together, by all submitters in turn."""

    batch_size = 100
    fair = True

    def lane(self, event: Recorded, routing_key: str) -> str:
        return submitter(event)


class ValidateDeposition(_Step):
    """Check the metadata of a deposition, and store the problems by field if it is invalid."""

    name = "records.validate_deposition"
    on = [DepositionSubmitted]

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        job_of = by_deposition(jobs)
        ids = number_array(job_of)
        rows = prepared(_READ, ids=ids)
        problems: dict[int, list[Problem]] = {
            id: errors for id, metadata in rows if (errors := problems_of(json.loads(metadata)))
        }
        with transaction.atomic():
            written = prepared(
                _VALIDATE,
                ids=ids,
                invalid=number_array(problems),
                problems=text_array(json.dumps(errors) for errors in problems.values()),
            )
            changed = [id for (id,) in written]
            extra = {id: {"problems": len(problems.get(id, ()))} for id in changed}
            publish_about(ValidationCompleted, changed, job_of, extra)
        skip_unchanged(job_of, changed)


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


class AutoApproveCuration(_Step):
    """Approve a valid deposition, unless a curator must decide (RECORDS_AUTO_APPROVE)."""

    name = "records.auto_approve_curation"
    on = [ValidationCompleted]

    def wants(self, event: Recorded) -> bool:
        return not event.raw_payload["problems"]

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        job_of = by_deposition(jobs)
        with transaction.atomic():
            rows = prepared(
                _APPROVE,
                ids=number_array(job_of),
                all=settings.RECORDS_AUTO_APPROVE,
                of_events=OF_EVENTS,
            )
            changed = [id for (id,) in rows]
            publish_about(DepositionApproved, changed, job_of)
        skip_unchanged(job_of, changed, {"valid": "the deposition waits for a curator"})


# A version is published only if it is later than all other versions of its record in this batch,
# and than the published version. A withdrawn record keeps only its title, owner and access. Records
# are written in the order of their identifiers, so that two batches cannot deadlock.
_PUBLISH = f"""
WITH approved AS MATERIALIZED (
  SELECT * FROM tailrace_records_deposition
  WHERE id = ANY(%(ids)s::bigint[]) AND {unindexed("state")} = 'approved'
  ORDER BY id FOR UPDATE
), latest AS (
  SELECT DISTINCT ON (identifier) * FROM approved ORDER BY identifier, datestamp DESC, id DESC
), written AS (
  INSERT INTO tailrace_records_record AS old (
    identifier, version, deposition_id, owner_id, access, title, description, creators, keywords,
    language, datestamp, is_deleted, published_at)
  SELECT identifier, 1, id, submitted_by_id, coalesce(metadata ->> 'access', 'open'),
    trim(coalesce(metadata ->> 'title', '')), trim(coalesce(metadata ->> 'description', '')),
    ARRAY(SELECT jsonb_array_elements_text(coalesce(metadata -> 'creators', '[]'))),
    ARRAY(SELECT jsonb_array_elements_text(coalesce(metadata -> 'keywords', '[]'))),
    coalesce(metadata ->> 'language', ''), datestamp, is_deleted, {clock.NOW}
  FROM latest ORDER BY identifier
  ON CONFLICT (identifier) DO UPDATE SET
    version = old.version + 1, deposition_id = excluded.deposition_id,
    owner_id = CASE WHEN excluded.is_deleted THEN old.owner_id ELSE excluded.owner_id END,
    access = CASE WHEN excluded.is_deleted THEN old.access ELSE excluded.access END,
    title = CASE WHEN excluded.is_deleted THEN old.title ELSE excluded.title END,
    description = excluded.description, creators = excluded.creators,
    keywords = excluded.keywords, language = excluded.language,
    datestamp = excluded.datestamp, is_deleted = excluded.is_deleted,
    published_at = excluded.published_at
  WHERE (old.datestamp, coalesce(old.deposition_id, 0))
      < (excluded.datestamp, excluded.deposition_id)
  RETURNING id, identifier, version, deposition_id, owner_id, title, is_deleted
), settled AS (
  UPDATE tailrace_records_deposition d
  SET state = CASE WHEN written.id IS NULL THEN 'superseded' ELSE 'published' END
  FROM approved LEFT JOIN written ON written.deposition_id = approved.id
  WHERE d.id = approved.id
)
SELECT * FROM written
"""


class PublishRecord(_Step):
    """Publish an approved deposition as the latest version of its record."""

    name = "records.publish_record"
    on = [DepositionApproved]

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        job_of = by_deposition(jobs)
        with transaction.atomic():
            rows = prepared(_PUBLISH, ids=number_array(job_of))
            publish(
                NewEvent(
                    RecordPublished,
                    {
                        "record": record,
                        "identifier": identifier,
                        "version": version,
                        "deposition": deposition,
                        "account": owner,
                        "title": title,
                        "is_deleted": is_deleted,
                    },
                    source=SOURCE,
                    source_id=f"record/{record}/{version}",
                    cause_id=getattr(job_of[deposition].event, "id", None),
                )
                for record, identifier, version, deposition, owner, title, is_deleted in rows
            )
        skip_unchanged(
            job_of,
            [deposition for _id, _identifier, _version, deposition, *_rest in rows],
            {"superseded": "a newer version is published"},
        )


class DeleteFiles(Handler):
    """Delete these files, except files that belong to a deposition."""

    name = DELETE_FILES
    max_attempts = 10
    backoff = Backoff(60, 300, 3600)

    class Payload(BaseModel):
        keys: list[str]

    def handle(self, job: ClaimedJob) -> None:
        keys = set(job.payload.keys)
        keys -= set(DepositionFile.objects.filter(key__in=keys).values_list("key", flat=True))
        if not keys:
            raise Skip("all of these files belong to depositions")
        if not files.delete(*keys):
            raise Retry("the storage cannot delete files now")
