"""The panel of records on the overview: unfinished depositions, and the jobs of each index."""

from typing import Any

from django.db.models import Count

from tailrace.domains.records.models import UNFINISHED, Deposition
from tailrace.domains.records.search.indexing.upkeep import REPLAY, index_states
from tailrace.jobs.platform.pages.panel import Panel


class Records(Panel):
    """The number of unfinished depositions in each state, and of each index's jobs."""

    title = "Records"
    order = 28
    template = "tailrace/records/panels/records.html"
    permission = "tailrace_records.view_deposition"

    def context(self) -> dict[str, Any]:
        unfinished = Deposition.objects.unfinished().order_by()
        counts = dict(unfinished.values_list("state").annotate(count=Count("pk")))
        return {
            "states": [(state, counts.get(state, 0)) for state in UNFINISHED],
            "indexes": index_states(),
            "may_replay": self.user.has_perm(REPLAY),
        }
