"""A harvest of 100,000 records, and the same harvest while users make a deposit every five seconds.

Each deposit is searched for by words until it is found, so it has passed the whole chain.
"""

from collections.abc import Sequence

from bench.domains.records import harvest
from bench.report import Row, Target, find, percentile
from bench.servers import Servers

TITLE = "Deposits beside a harvest"
COUNT = 100_000
SECONDS = 5
"""Between two deposits."""
ALONE, BESIDE = "harvest, no deposits", "harvest beside deposits"
FOUND, LONGEST = "a deposit is found, median", "a deposit is found, longest"


def run(servers: Servers, short: bool) -> list[Row]:
    """Both harvests, one after the other, each in an empty database."""
    count = COUNT // (10 if short else 1)
    alone, beside = (harvest(servers, count, deposit_every=every) for every in (0, SECONDS))
    if wrong := [done for done in (alone, beside) if not done["complete"]]:
        return [Row("deposits", "Tailrace", ALONE, 0, "/s", f"WRONG: {wrong}")]
    waits, records = beside["waits"], f"{count:,} records"
    return [
        Row("deposits", "Tailrace", ALONE, count / alone["seconds"], "/s", records),
        Row("deposits", "Tailrace", BESIDE, count / beside["seconds"], "/s", records),
        Row("deposits", "Tailrace", FOUND, percentile(waits, 0.5), "s", f"{len(waits)} deposits"),
        Row("deposits", "Tailrace", LONGEST, max(waits, default=0), "s"),
    ]


def targets(rows: Sequence[Row]) -> list[Target]:
    """Deposits do not wait for the harvest, and slow it down little."""
    alone, beside, longest = (find(rows, "Tailrace", each) for each in (ALONE, BESIDE, LONGEST))
    return [
        Target("a deposit beside a harvest is found, longest, s", longest or 1e9, 5, "less"),
        Target("harvest beside deposits against no deposits", beside / max(alone, 0.01), 0.9),
    ]
