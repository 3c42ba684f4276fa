"""`make bench`: all benchmarks, or those that are named, in about ten minutes."""

import argparse
import importlib
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.report import Row, Target, table, write
from bench.servers import ROOT, Servers

NAMES = (
    "throughput",
    "tasks",
    "celery_tasks",
    "celery_faults",
    "flows",
    "publish",
    "latency",
    "parts",
    "scale",
    "claimers",
    "schedules",
    "herd",
    "footprint",
    "memory",
    "photos",
    "waiting",
    "imports",
    "scans",
    "records",
    "observed",
    "storage",
    "held_snapshot",
    "far_database",
)
GROUPS = {"scale": ("scale", "storage", "claimers", "held_snapshot")}
"""What the name of a group stands for."""
OPTIONAL = ("huge_import", "deposits")
"""Only if they are named."""
ALL = (*NAMES, *OPTIONAL)
FOLDERS = {
    "celery_host": ("celery_tasks", "celery_faults"),
    "domains": ("photos", "imports", "scans", "records", "deposits", "huge_import"),
    "size": ("footprint", "memory", "storage"),
    "jobs.claiming": ("claimers", "held_snapshot", "far_database"),
}
"""Benchmarks by their folder in bench/; the others are in bench/jobs."""


def main() -> int:
    """Print tables and targets; write JSON to var/bench."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", default="", help=f"of {', '.join(ALL)}, by commas")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "var" / "bench", help="folder of the JSON"
    )
    parser.add_argument("--short", action="store_true", help="a tenth of the work")
    arguments = parser.parse_args()
    asked = [name for name in arguments.only.split(",") if name] or list(NAMES)
    names = list(dict.fromkeys(each for name in asked for each in GROUPS.get(name, (name,))))
    if unknown := set(names) - set(ALL):
        parser.error(f"--only {', '.join(sorted(unknown))}: choose from {', '.join(ALL)}")
    servers = Servers()
    rows: list[Row] = []
    targets: list[Target] = []
    try:
        for name in names:
            folder = next((each for each, its in FOLDERS.items() if name in its), "jobs")
            bench = importlib.import_module(f"bench.{folder}.{name}")
            began = time.monotonic()
            print(f"\n## {bench.TITLE}\n", flush=True)
            rows_of_bench = bench.run(servers, arguments.short)
            held = bench.targets(rows_of_bench)
            print(table(rows_of_bench), "", *map(str, held), sep="\n")
            print(f"({time.monotonic() - began:.0f} s)", flush=True)
            rows += rows_of_bench
            targets += held
    finally:
        servers.close()
    where = servers.where() | {
        "short": arguments.short,
        "at": f"{datetime.now(UTC):%F %H:%M} UTC",
    }
    for path in ("latest.json", f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"):
        write(arguments.out / path, where, rows, targets)
    print(f"\n{where}\nwritten to {arguments.out}/latest.json")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
