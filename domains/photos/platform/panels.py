"""The card of photos on the overview: the sweeper's last runs, and unclusterable photos."""

from typing import Any, ClassVar

from django.db.models import Subquery

from tailrace.domains.photos.invariants import ActiveGatheringsGrow, PhotosGather
from tailrace.domains.photos.models import Photo
from tailrace.jobs.models import SweepRun
from tailrace.jobs.platform.pages.panel import Panel
from tailrace.jobs.runtime.invariant import Invariant, all_invariants

MAX_PHOTOS = 6
MAX_COUNT = 10_000
REPAIR_NAMES = {PhotosGather.name: "requeued", ActiveGatheringsGrow.name: "finalized"}
"""Verbs for the repairs of invariants; the default is “repaired”."""
RUNS_SEARCHED = 200
"""Latest runs of an invariant among which the last skipped run is searched."""


class Photos(Panel):
    """The sweeper's last runs, and the latest unclusterable photos."""

    title = "Photos"
    order = 25
    template = "tailrace/photos/panels/photos.html"
    wide: ClassVar[bool] = True
    permission = "tailrace_photos.view_photo"

    def context(self) -> dict[str, Any]:
        photos = Photo.objects.unclusterable().order_by("-given_up_at")
        return {
            "lines": [_line(rule) for rule in all_invariants() if rule.name.startswith("photos.")],
            "unclusterable": list(photos.select_related("user")[:MAX_PHOTOS]),
            "count": len(photos.order_by().values_list("pk")[:MAX_COUNT]),
        }


def _line(invariant: Invariant) -> dict[str, Any]:
    """Return the table row of an invariant: its last run, and its last skipped run."""
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
