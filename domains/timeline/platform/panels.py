"""The card of imports on the overview: imports under way, sizes of tables, and failed imports."""

from typing import Any, ClassVar

from tailrace.db.query import database_now, query
from tailrace.domains.timeline.imports import cleanup
from tailrace.domains.timeline.imports.files.parsing.file_errors import error_position
from tailrace.domains.timeline.imports.progress import points_per_second, progress_of
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import ENDED, State
from tailrace.domains.timeline.platform import inspection
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB_PAYLOAD
from tailrace.jobs.platform.pages.panel import Panel

MAX_IMPORTS = 8
MAX_COUNT = 10_000
UNDER_WAY = [state for state in State if state not in (State.RECEIVING, *ENDED)]

_SIZES = """
SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::bigint
FROM unnest(%(names)s::text[]) AS name
"""


class Imports(Panel):
    """Imports under way, their promotion queue, and the latest failed imports."""

    title = "Imports"
    order = 26
    template = "tailrace/timeline/panels/imports.html"
    wide: ClassVar[bool] = True
    permission = "tailrace_timeline.view_import"

    def context(self) -> dict[str, Any]:
        rows = Import.objects.filter(state__in=UNDER_WAY).select_related("user")
        failed = Import.objects.hidden().filter(state=State.FAILED, ended_at__isnull=False)
        partitions = list(cleanup.partitions().values())[:MAX_COUNT]
        [(size,)] = query(_SIZES, names=partitions)
        line = inspection.promotion_line()
        return {
            "lines": _lines(list(rows.order_by("promote_at", "created_at")[:MAX_IMPORTS])),
            "count": len(rows.order_by().values_list("pk")[:MAX_COUNT]),
            "partitions": len(partitions),
            "size": size,
            "promotions": line[:MAX_IMPORTS],
            "more_promotions": max(0, len(line) - MAX_IMPORTS),
            "failed": [
                {"row": row, "position": error_position(row.error)}
                for row in failed.select_related("user").order_by("-ended_at")[:MAX_IMPORTS]
            ],
            "shows_jobs": self.user.has_perm("tailrace_jobs.view_job"),
            "shows_errors": self.user.has_perm(VIEW_JOB_PAYLOAD),
        }


def _lines(rows: list[Import]) -> list[dict[str, Any]]:
    now, sizes = database_now(), inspection.staged_bytes(rows)
    return [
        {
            "row": row,
            "state": State(row.state).label.lower(),
            "position": error_position(row.error),
            "progress": progress_of(row, now),
            "rate": points_per_second(row, now),
            "bytes": sizes.get(row.pk),
        }
        for row in rows
    ]
