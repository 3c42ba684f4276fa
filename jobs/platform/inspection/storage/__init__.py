"""The sizes of the tables, and the session that keeps vacuum from removing dead rows."""

from tailrace.jobs.platform.inspection.storage.relations import Relation, Sizes, sizes
from tailrace.jobs.platform.inspection.storage.snapshot import Snapshot, oldest_snapshot

__all__ = ["Relation", "Sizes", "Snapshot", "oldest_snapshot", "sizes"]
