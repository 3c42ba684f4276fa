"""Publish approved depositions as records."""

from collections.abc import Sequence

from django.db import transaction

from tailrace.db import clock
from tailrace.db.prepared import query
from tailrace.db.sql.arrays import number_array
from tailrace.db.sql.plans import unindexed
from tailrace.domains.records.depositions.jobs_of import by_deposition, skip_others
from tailrace.domains.records.event_types import SOURCE, DepositionApproved, RecordPublished
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.handler import ClaimedJob, Handler

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


class PublishRecord(Handler):
    """Publish an approved deposition as the latest version of its record."""

    name = "records.publish_record"
    on = [DepositionApproved]
    batch_size = 100

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        job_of = by_deposition(jobs)
        with transaction.atomic():
            rows = query(_PUBLISH, ids=number_array(job_of))
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
        skip_others(
            job_of,
            [deposition for _id, _identifier, _version, deposition, *_rest in rows],
            {"superseded": "a newer version is published"},
        )
