from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from tailrace.jobs.platform.commands._shared import table
from tailrace.jobs.platform.inspection.display.formatting import ago, share, size, when
from tailrace.jobs.platform.inspection.storage import Relation, oldest_snapshot, sizes

SHOWN = 20
HEADER = (
    "table", "total", "rows", "dead", "heap", "indexes", "toast", "HOT", "last vacuum",
)  # fmt: skip


class Command(BaseCommand):
    help = "Show the sizes of the largest tables, and the holder of the oldest snapshot."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--limit", type=int, default=SHOWN, help="number of tables to show")

    def handle(self, *args: Any, **options: Any) -> None:
        now = sizes(max(options["limit"], 1))
        self.stdout.write(table(HEADER, [_row(relation) for relation in now.relations]))
        self.stdout.write(f"{size(now.total)} in {now.tables:,} tables")
        snapshot = oldest_snapshot()
        if snapshot is None:
            self.stdout.write("No other session holds a snapshot.")
            return
        since = f" since {when(snapshot.since)}" if snapshot.since else ""
        self.stdout.write(
            f"Oldest snapshot: {snapshot.holder}{since}, {snapshot.transactions:,} transactions ago"
        )


def _row(relation: Relation) -> tuple[Any, ...]:
    parts = f" ({relation.parts:,} partitions)" if relation.parts > 1 else ""
    return (
        relation.name + parts,
        size(relation.total),
        f"{relation.rows:,}",
        f"{relation.dead:,}",
        *map(size, (relation.heap, relation.indexes, relation.toast)),
        share(relation.hot),
        ago(relation.vacuumed_at) if relation.vacuumed_at else "never",
    )
