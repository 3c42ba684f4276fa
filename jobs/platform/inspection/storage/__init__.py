"""The sizes of the tables, and the session that keeps vacuum from removing dead rows."""

from tailrace.jobs.platform.inspection.storage.relations import Relation, Sizes, sizes
from tailrace.jobs.platform.inspection.storage.snapshot import (
    Snapshot,
    end_session,
    oldest_snapshot,
)

__all__ = ["Relation", "Sizes", "Snapshot", "end_session", "oldest_snapshot", "sizes"]
