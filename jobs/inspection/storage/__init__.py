"""What the tables of the database cost, and who keeps their dead rows from being removed."""

from tailrace.jobs.inspection.storage.relations import Relation, Sizes, sizes
from tailrace.jobs.inspection.storage.snapshot import Snapshot, oldest_snapshot

__all__ = ["Relation", "Sizes", "Snapshot", "oldest_snapshot", "sizes"]
