"""Measure how fast location histories are parsed and staged, beside the least it can take.

The least is two passes in the same run: the parser alone (expat or ijson, every field converted,
nothing checked), and a binary COPY of rows that were packed before. Each side is a process of its
own. gpxpy with multi-row INSERTs is measured if it is installed, ogr2ogr if the machine has it.

Then an import is promoted, beside one INSERT … SELECT of the same points into the same table, while
another process sends points of the same device; and its places are named. The same file is
imported again, and both imports are undone.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.domains import track_files
from bench.report import Row, Target, find
from bench.servers import ROOT, Servers, dsn

TITLE = "Imports of location histories"
OURS, BARE, RATIO = "Tailrace", "bare parser + bare COPY", "Tailrace ÷ bare"
LIMITS = {"gpx": 200_000, "records": 250_000}
OTHERS = 100_000
PROMOTION, ENRICHMENT = "promotion", "places"
DUPLICATES, UNDO = "promotion of known points", "undo, the points go"
LIVE = "a live point waits, p99"


def run(servers: Servers, short: bool) -> list[Row]:
    """Each format by each side, one after the other."""
    count = 100_000 if short else 1_000_000
    env = servers.environment(servers.database("imports"), servers.broker())
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")

    def measure(side: str, path: Path | str) -> dict[str, Any]:
        output = servers.run(env, "-m", "bench.domains.inside.imports", side, str(path), str(count))
        result: dict[str, Any] = json.loads(output)
        return result

    rows = []
    copy = measure("copy", "")["rate"]
    rows.append(Row("imports", "bare COPY", "rows packed before", copy, "points/s"))
    with tempfile.TemporaryDirectory() as folder:
        for name, write in track_files.WRITERS.items():
            path = Path(folder) / f"track.{name}"
            write(path, count)
            rows += _format(name, path, copy, measure)
            if name == "gpx":
                rows += _gpx_peers(path, count, env, measure)
            path.unlink()
    rows += _promotion(servers, env, count)
    servers.drop()
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """The requirements, on 2 cores."""
    names = [name for name in track_files.WRITERS if find(rows, OURS, name)]
    speeds = []
    for name in names:
        limit = LIMITS.get(name, OTHERS)
        speeds.append(Target(f"{name}, points/s", find(rows, OURS, name), limit))
        speeds.append(Target(f"{name}, ratio to the bare passes", find(rows, RATIO, name), 0.75))
    peak = max(row.details.get("peak", 0) for row in rows if row.side == OURS)
    named = find(rows, "names alone", ENRICHMENT)
    places = [Target("places named, places/s", named, 100_000)] if named else []
    return [
        *speeds,
        Target("peak memory of any process, MB", peak, 150, "less"),
        Target("promotion, s per million", find(rows, OURS, PROMOTION), 6, "less"),
        Target("promotion of known points", find(rows, OURS, DUPLICATES), 20, "less"),
        Target("undo, s per million", find(rows, OURS, UNDO), 25, "less"),
        Target("a live point meanwhile, p99, ms", find(rows, LIVE, "meanwhile"), 100, "less"),
        *places,
    ]


def _format(
    name: str, path: Path, copy: float, measure: Callable[[str, Path], dict[str, Any]]
) -> list[Row]:
    ours = measure("ours", path)
    parser = measure("bare", path)["rate"]
    both = 1 / (1 / parser + 1 / copy)
    size = path.stat().st_size / 1e6
    note = f"{size:,.0f} MB; {ours['peak']:.0f} MB of memory, {ours['added']:.0f} by the import"
    return [
        Row("imports", OURS, name, ours["rate"], "points/s", note, ours),
        Row("imports", BARE, name, both, "points/s", f"the parser alone: {parser:,.0f}"),
        Row("imports", RATIO, name, ours["rate"] / both, ""),
    ]


def _gpx_peers(
    path: Path, count: int, env: dict[str, str], measure: Callable[[str, Path], dict[str, Any]]
) -> list[Row]:
    rows = []
    if find_spec("gpxpy"):
        result = measure("gpxpy", path)
        note = f"{result['peak']:.0f} MB of memory"
        rows.append(Row("imports", "gpxpy + INSERTs", "gpx", result["rate"], "points/s", note))
    if shutil.which("ogr2ogr"):
        began = time.perf_counter()
        target = f"PG:{dsn(env['DATABASE_URL'])}"
        subprocess.run(
            ["ogr2ogr", "-f", "PostgreSQL", target, str(path), "track_points"], check=True
        )
        rate = count / (time.perf_counter() - began)
        rows.append(Row("imports", "ogr2ogr", "gpx", rate, "points/s"))
    return rows


def _promotion(servers: Servers, env: dict[str, str], count: int) -> list[Row]:
    places = count // 10
    module = "bench.domains.inside.promotion"

    def side(*arguments: object) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(servers.run(env, "-m", module, *map(str, arguments)))
        return result

    def live() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", module, "live"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe)
        if process.stdout is not None:
            process.stdout.readline()  # it is connected
        return process

    def waits(process: subprocess.Popen[bytes]) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(process.communicate(b"\n")[0])
        return result

    side("make", count, places)
    one = side("bare")["seconds"] * 1e6 / count
    process = live()
    time.sleep(5)
    before = waits(process)
    process = live()
    ours = side("promote")
    meanwhile = waits(process)
    seconds = ours["promote"] * 1e6 / count
    named = _enrichment(ours, side("name", places))
    side("make", count, places)
    again = side("promote")
    steps = {
        DUPLICATES: again["promote"],
        "undo, another import keeps the points": side("undo", 0)["seconds"],
        UNDO: side("undo", 1)["seconds"],
    }
    note = f"{meanwhile['count']:,} points, the longest {meanwhile['most']:.0f} ms"
    return [
        Row("imports", OURS, PROMOTION, seconds, "s per million", "with live points"),
        Row("imports", "one INSERT … SELECT", PROMOTION, one, "s per million", "without"),
        Row("imports", RATIO, PROMOTION, seconds / one, "", "less is better"),
        Row("imports", LIVE, "before", before["p99"], "ms"),
        Row("imports", LIVE, "meanwhile", meanwhile["p99"], "ms", note),
        *named,
        *(
            Row("imports", OURS, name, taken * 1e6 / count, "s per million")
            for name, taken in steps.items()
        ),
    ]


def _enrichment(ours: dict[str, Any], alone: dict[str, Any]) -> list[Row]:
    """The rows of naming places, which needs the extra `places`."""
    if lacking := alone["lacking"]:
        return [
            Row.left_out("imports", name, ENRICHMENT, lacking) for name in ("names alone", OURS)
        ]
    rate = ours["places"] / ours["enrich"]
    return [
        Row("imports", "names alone", ENRICHMENT, alone["rate"], "places/s"),
        Row("imports", OURS, ENRICHMENT, rate, "places/s", "found and stored"),
    ]
