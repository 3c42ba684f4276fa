"""The card of photos on the overview: the sweeper's last runs, and photos that stay alone."""

from typing import Any, ClassVar

from django.db.models import Subquery

from tailrace.domains.photos.models import Photo
from tailrace.jobs.maintenance.invariant import Invariant, all_invariants
from tailrace.jobs.models import SweepRun
from tailrace.jobs.overview.panel import Panel

MAX_PHOTOS = 6
MAX_COUNT = 10_000
REPAIR_NAMES = {
    "photos.photos_gather": "requeued",
    "photos.active_gatherings_grow": "finalized",
}
"""What the repair of an invariant is called; of others: repaired."""
RUNS_SEARCHED = 200
"""Runs of an invariant that are searched for the last skipped one."""


class Photos(Panel):
    """The sweeper's last runs, and photos that are unclusterable."""

    title = "Photos"
    order = 25
    template = "tailrace/photos/panels/photos.html"
    wide: ClassVar[bool] = True
    permission = "tailrace_photos.view_photo"

    def context(self) -> dict[str, Any]:
        alone = Photo.objects.unclusterable().order_by("-given_up_at")
        return {
            "lines": [_line(rule) for rule in all_invariants() if rule.name.startswith("photos.")],
            "alone": list(alone.select_related("user")[:MAX_PHOTOS]),
            "count": len(alone.order_by().values_list("pk")[:MAX_COUNT]),
        }


def _line(invariant: Invariant) -> dict[str, Any]:
    """Return an invariant's last run, and the last that was skipped."""
    name = invariant.name
    runs = SweepRun.objects.filter(invariant=name).order_by("-id")
    latest = Subquery(runs.values("pk")[:RUNS_SEARCHED])
    skipped = SweepRun.objects.filter(pk__in=latest, outcome="skipped")
    return {
        "name": name,
        "title": name.partition(".")[2].replace("_", " "),
        "meaning": invariant.description(),
        "repair_name": REPAIR_NAMES.get(name, "repaired"),
        "run": runs.first(),
        "skipped": skipped.order_by("-id").first(),
    }
