"""`make bench`: all benchmarks, or those that are named, in about ten minutes."""

import argparse
import importlib
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.house import ROOT, House
from bench.report import Bar, Row, table, write

NAMES = ("throughput", "publish", "latency", "scale", "herd", "memory", "photos")


def main() -> int:
    """Print tables and bars; write JSON to var/bench."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", default="", help=f"of {', '.join(NAMES)}, by commas")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "var" / "bench", help="folder of the JSON"
    )
    parser.add_argument("--short", action="store_true", help="a tenth of the work")
    arguments = parser.parse_args()
    names = [name for name in arguments.only.split(",") if name] or list(NAMES)
    if unknown := set(names) - set(NAMES):
        parser.error(f"--only {', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    house = House()
    rows: list[Row] = []
    bars: list[Bar] = []
    try:
        for name in names:
            bench = importlib.import_module(f"bench.{name}")
            began = time.monotonic()
            print(f"\n## {bench.TITLE}\n", flush=True)
            found = bench.run(house, arguments.short)
            held = bench.bars(found)
            print(table(found), "", *map(str, held), sep="\n")
            print(f"({time.monotonic() - began:.0f} s)", flush=True)
            rows += found
            bars += held
    finally:
        house.close()
    where = house.where() | {"short": arguments.short, "at": f"{datetime.now(UTC):%F %H:%M} UTC"}
    for path in ("latest.json", f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"):
        write(arguments.out / path, where, rows, bars)
    print(f"\n{where}\nwritten to {arguments.out}/latest.json")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
