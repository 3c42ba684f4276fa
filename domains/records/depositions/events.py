"""Publish events about many depositions in one call."""

from collections.abc import Iterable, Mapping
from typing import Any

from tailrace.db.query import prepared
from tailrace.db.sql.arrays import number_array
from tailrace.domains.records.depositions.batch_jobs import JobOf
from tailrace.domains.records.event_types import SOURCE, DepositionEvent
from tailrace.events.publish import NewEvent, publish

_ABOUT = """
SELECT d.id, d.identifier, d.submitted_by_id, coalesce(s.name, '')
FROM tailrace_records_deposition d LEFT JOIN tailrace_records_source s ON s.id = d.source_id
WHERE d.id = ANY(%(ids)s::bigint[]) ORDER BY d.id
"""


def publish_about(
    event_type: type[DepositionEvent],
    ids: Iterable[int],
    job_of: JobOf | None = None,
    extra: Mapping[int, Mapping[str, Any]] | None = None,
    *,
    cause_id: int | None = None,
    actor: str | None = None,
) -> None:
    """Publish an event of this type about each deposition, unless it has such an event already.

    The cause of an event is the event of the deposition's job in `job_of`, or else `cause_id`.
    `extra` has further fields of the payload, by deposition.
    """
    causes = {id: job.event.id if job.event else None for id, job in (job_of or {}).items()}
    publish(
        NewEvent(
            event_type,
            {
                "deposition": id,
                "identifier": identifier,
                "account": account,
                "source": source,
                **(extra or {}).get(id, {}),
            },
            source=SOURCE,
            source_id=event_id(event_type, id),
            cause_id=causes.get(id, cause_id),
            actor=actor,
        )
        for id, identifier, account, source in prepared(_ABOUT, ids=number_array(ids))
    )


def event_id(event_type: type[DepositionEvent], deposition: int) -> str:
    """Return the source_id of the deposition's event of this type: `deposition/7/submitted`."""
    return f"deposition/{deposition}/{event_type.name.rpartition('_')[2]}"
