"""The domain's card on the overview: what the sweeper did of late, and who stays alone."""

from dataclasses import dataclass
from typing import Any, ClassVar

from django.db.models import Subquery

from domains.photos.models import Photo
from jobs import invariants
from jobs.models import SweepRun
from jobs.panels import Panel

LATEST = 6
COUNTED = 10_000
REPAIRED = {
    "photos.photos_gather": "requeued",
    "photos.active_gatherings_grow": "finalized",
}
"""What the repair of an invariant is called; of others: repaired."""


@dataclass(frozen=True, slots=True)
class Line:
    """An invariant's last run, and the last that was skipped."""

    name: str
    title: str
    meaning: str
    did: str
    run: SweepRun | None
    skipped: SweepRun | None


class Photos(Panel):
    """The sweeper's last runs, and photos that are unclusterable."""

    title = "Photos"
    order = 25
    template = "photos/panels/photos.html"
    wide: ClassVar[bool] = True
    permission = "photos.view_photo"

    def context(self) -> dict[str, Any]:
        alone = Photo.objects.unclusterable().order_by("-given_up_at")
        return {
            "lines": _lines(),
            "alone": list(alone.select_related("user")[:LATEST]),
            "count": len(alone.order_by().values_list("pk")[:COUNTED]),
        }


def _lines() -> list[Line]:
    ours = [one for one in invariants.everything() if one.name.startswith("photos.")]
    return [
        Line(
            one.name,
            one.name.partition(".")[2].replace("_", " "),
            one.description(),
            REPAIRED.get(one.name, "repaired"),
            _last(one.name),
            _last(one.name, outcome="skipped"),
        )
        for one in ours
    ]


LOOKED_AT = 200
"""Runs of an invariant among which the last skipped one is looked for."""


def _last(name: str, **those: str) -> SweepRun | None:
    runs = SweepRun.objects.filter(invariant=name).order_by("-id")
    if those:
        latest = Subquery(
            SweepRun.objects.filter(invariant=name).order_by("-id").values("pk")[:LOOKED_AT]
        )
        runs = SweepRun.objects.filter(pk__in=latest, **those).order_by("-id")
    return runs.first()
