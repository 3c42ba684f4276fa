"""The embedding models that index records, and the model that search uses.

After a change of RECORDS_MODEL:

    the former model is complete: search uses it; both models index new records
        │ the new model indexes all records, a thousand per job (records.reindex)
        ▼
    the new model is complete, and the former one is not any more: search uses the new model
        │ a day later, so that RECORDS_MODEL can be changed back quickly
        ▼
    the vectors of the former model are deleted in batches

A model is complete if it has indexed all records. At most one model is marked as complete. Each
step is one of the statements below.
"""

from datetime import timedelta

import structlog

from tailrace.db import clock
from tailrace.db.query import database_now, execute, query
from tailrace.domains.records.models import EmbeddingIndex
from tailrace.domains.records.search.embeddings.loaded import configured, configured_key, load
from tailrace.domains.records.search.embeddings.model import EmbeddingModel, ModelKey, ModelUnusable

KEPT_HOURS = 24
"""How long the vectors of a former model are kept."""
LATE = f"{clock.NOW} - interval '5 minutes'"
"""Later records may still wait for their job of records.index_record."""

log = structlog.get_logger(__name__)

_REGISTER = """
INSERT INTO tailrace_records_embeddingindex (location, model, model_version, dimensions)
VALUES (%(location)s, %(model)s, %(model_version)s, %(dimensions)s)
ON CONFLICT (model, model_version) DO UPDATE SET location = EXCLUDED.location
  WHERE tailrace_records_embeddingindex.location <> EXCLUDED.location
"""
_COMPLETE = f"""
UPDATE tailrace_records_embeddingindex
SET completed_at = CASE WHEN id = %(id)s THEN {clock.NOW} END
WHERE id = %(id)s OR completed_at IS NOT NULL
"""
_WITHOUT_VECTOR = f"""
SELECT r.id FROM tailrace_records_record r
WHERE NOT r.is_deleted AND r.published_at < {LATE} AND NOT EXISTS (
  SELECT FROM tailrace_records_vectorentry v
  WHERE v.record_id = r.id AND v.model = %(model)s AND v.model_version = %(model_version)s
    AND v.version >= r.version)
LIMIT %(limit)s
"""
_DELETE = """
DELETE FROM tailrace_records_vectorentry WHERE record_id > %(after)s AND record_id <= %(until)s
  AND model = %(model)s AND model_version = %(model_version)s
"""


def register(key: ModelKey, location: str) -> None:
    """Create the row of this model, which indexes records from now on."""
    execute(
        _REGISTER, location=location, model=key.name, model_version=key.version,
        dimensions=key.dimensions,
    )  # fmt: skip


def index_of(key: ModelKey) -> EmbeddingIndex | None:
    """Return the row of this model, or None if it has not been registered."""
    return EmbeddingIndex.objects.filter(model=key.name, model_version=key.version).first()


def model_to_search_by() -> EmbeddingModel:
    """Return the complete model, or the configured one if no model is complete or the complete
    model cannot be loaded. Raises ModelUnusable."""
    return _complete_model() or configured()


def models_to_index_by() -> list[EmbeddingModel]:
    """Return the configured model, and the complete model if it differs. Raises ModelUnusable."""
    model, complete = configured(), _complete_model()
    if complete is None or model.key == complete.key:
        return [model]
    return [model, complete]


def _complete_model() -> EmbeddingModel | None:
    row = EmbeddingIndex.objects.complete().first()
    if row is None:
        return None
    try:
        model = load(row.location)
    except ModelUnusable as error:
        log.warning("records.former_model_unusable", model=str(row), error=str(error))
        return None
    if (model.key.name, model.key.version) != (row.model, row.model_version):
        return None  # the folder now contains another model
    return model


def records_without_vector(key: ModelKey, limit: int) -> list[int]:
    """Return the ids of at most `limit` records without a vector of this model, except records of
    the last five minutes."""
    rows = query(_WITHOUT_VECTOR, model=key.name, model_version=key.version, limit=limit)
    return [id for (id,) in rows]


def complete(index: EmbeddingIndex) -> None:
    """Mark this model as the complete one, so that search uses it."""
    execute(_COMPLETE, id=index.pk)
    log.info("records.model_complete", model=str(index))


def delete_vectors(index: EmbeddingIndex, after: int, until: int) -> int:
    """Delete the vectors of records with ids greater than `after`, up to `until`; return how
    many."""
    key = {"model": index.model, "model_version": index.model_version}
    return execute(_DELETE, after=after, until=until, **key)


def former(at_once: bool = False) -> list[EmbeddingIndex]:
    """Return the former models whose vectors can be deleted.

    There are none until the configured model has been complete for KEPT_HOURS, or complete at all
    with `at_once`.
    """
    current = index_of(configured_key())
    if current is None or current.completed_at is None:
        return []
    kept = timedelta(0) if at_once else timedelta(hours=KEPT_HOURS)
    if current.completed_at + kept > database_now():
        return []
    return list(EmbeddingIndex.objects.filter(completed_at=None).order_by("pk"))
