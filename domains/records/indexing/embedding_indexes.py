"""Which embedding model records are indexed by, and which one search uses.

A change of RECORDS_MODEL:

    the former model is complete: search uses it; new records are indexed by both
        │ a job per thousand records indexes them by the new model (handlers/reindex.py)
        ▼
    the new model has all records: it is complete, the former one no longer; search uses it
        │ a day later, so that going back is quick
        ▼
    the vectors of the former model are deleted, in pieces

At most one model is complete. Each move is one statement below.
"""

from datetime import timedelta

import structlog

from tailrace.db import clock
from tailrace.db.query import database_now, execute, query
from tailrace.domains.records.embeddings.loaded import configured, configured_key, load
from tailrace.domains.records.embeddings.model import EmbeddingModel, ModelKey, ModelUnusable
from tailrace.domains.records.models import EmbeddingIndex

KEPT_HOURS = 24
"""That the vectors of a former model are kept."""
LATE = f"{clock.NOW} - interval '5 minutes'"
"""Records that were published since then may still wait for their job."""

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
_LACKING = f"""
SELECT r.id FROM tailrace_records_record r
WHERE NOT r.is_deleted AND r.published_at < {LATE} AND NOT EXISTS (
  SELECT FROM tailrace_records_vectorentry v
  WHERE v.record_id = r.id AND v.model = %(model)s AND v.model_version = %(model_version)s
    AND v.version >= r.version)
LIMIT %(limit)s
"""


def register(key: ModelKey, location: str) -> None:
    """Note that records are indexed by this model from now on."""
    execute(
        _REGISTER, location=location, model=key.name, model_version=key.version,
        dimensions=key.dimensions,
    )  # fmt: skip


def index_of(key: ModelKey) -> EmbeddingIndex | None:
    """Return the row of this model; None before anything was indexed by it."""
    return EmbeddingIndex.objects.filter(model=key.name, model_version=key.version).first()


def model_to_search_by() -> EmbeddingModel:
    """Return the model that has all records; the configured one while none has, or while that one
    cannot be loaded. Raises ModelUnusable."""
    return _complete_model() or configured()


def models_to_index_by() -> list[EmbeddingModel]:
    """Return the configured model, and the one that search uses. Raises ModelUnusable."""
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
        return None  # another model was put into its folder
    return model


def lacking(key: ModelKey, limit: int) -> list[int]:
    """Return the ids of at most so many records that this model lacks, but for the latest."""
    rows = query(_LACKING, model=key.name, model_version=key.version, limit=limit)
    return [id for (id,) in rows]


def complete(index: EmbeddingIndex) -> None:
    """Let search use this model."""
    execute(_COMPLETE, id=index.pk)
    log.info("records.model_complete", model=str(index))


def former(at_once: bool = False) -> list[EmbeddingIndex]:
    """Return the models whose vectors nobody needs: a day after the configured one has all records,
    or at once."""
    own = index_of(configured_key())
    if own is None or own.completed_at is None:
        return []
    kept = timedelta(0) if at_once else timedelta(hours=KEPT_HOURS)
    if own.completed_at + kept > database_now():
        return []
    return list(EmbeddingIndex.objects.filter(completed_at=None).order_by("pk"))


def is_former(index: EmbeddingIndex) -> bool:
    """Whether nobody needs this model, a day or less after the change."""
    return index in former(at_once=True)
