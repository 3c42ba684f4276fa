"""`make bench-against REV=…`: another revision and this checkout, side by side in one run.

Both work on the same servers, each in a database of its own, and take turns, so that what else the
machine does meets both. The ratios say how fast this checkout is: 1.00 is as fast as the other.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.jobs.throughput import SIDES, Side, drain
from bench.servers import ROOT, Servers

OLD, NEW = "old", "new"
CALLS = {
    "publish": 50,
    "publish_bulk": 1,
    "enqueue": 50,
    "enqueue_keyed": 50,
    "enqueue_merged": 50,
    "drain_batch": 2000,
    "drain_single": 200,
    "claim_ordered": 200,
}
"""What one process does in a round, and how many events, transactions or jobs."""
UNITS = {"publish": "events/s", "publish_bulk": "events/s"}
BACKLOG = 2_000
"""Events of a round of throughput, four jobs each."""


def main() -> int:
    """Print a table; never fails because something is slow."""
    parser = argparse.ArgumentParser(prog="bench.against", description=__doc__)
    parser.add_argument("rev", help="a revision of git")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls-only", action="store_true", help="start no workers")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tailrace-against-"))
    servers = Servers()
    try:
        roots = {OLD: checkout(arguments.rev, folder), NEW: ROOT}
        print(table(arguments.rev, calls(servers, roots, arguments.rounds)), flush=True)
        if not arguments.calls_only:
            for side in SIDES[:2]:
                rounds = max(arguments.rounds // 5, 1)
                print(lines(throughput(servers, roots, side, rounds)), flush=True)
    finally:
        servers.close()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def checkout(rev: str, folder: Path) -> Path:
    """Write the files of a revision to the folder."""
    archive = subprocess.run(
        ["git", "archive", rev], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


Figures = dict[str, dict[str, list[float]]]
"""What was done → side → its rate in each round."""


def calls(servers: Servers, roots: dict[str, Path], rounds: int) -> Figures:
    """Publish, and drain without workers, in one process of each side."""
    figures: Figures = {name: {OLD: [], NEW: []} for name in CALLS}
    sides = {}
    try:
        for side, root in roots.items():
            env = servers.environment(
                servers.database(side), servers.broker(), BENCH_VARIANT="nothing",
                PYTHONPATH=os.pathsep.join([str(root / "src"), str(root)]),
            )  # fmt: skip
            servers.run(env, "-m", "bench.sides.tailrace", "prepare", root=root)
            sides[side] = subprocess.Popen(
                [sys.executable, "-P", str(ROOT / "bench" / "against_side.py")],
                cwd=root, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        for round in range(-1, rounds):
            for name, count in CALLS.items():
                for side in (OLD, NEW) if round % 2 else (NEW, OLD):
                    rate = _ask(sides[side], name, count)
                    if round >= 0:  # the first round is to warm up
                        figures[name][side].append(rate)
    finally:
        for process in sides.values():
            process.kill()
            process.wait()
    servers.drop()
    return figures


def _ask(process: Any, name: str, count: int) -> float:
    process.stdin.write(f"{name} {count}\n")
    process.stdin.flush()
    return float(json.loads(process.stdout.readline() or "0"))


def throughput(servers: Servers, roots: dict[str, Path], side: Side, rounds: int) -> Figures:
    """A backlog worked off by a worker with as many processes as cores."""
    rates: dict[str, list[float]] = {OLD: [], NEW: []}
    for round in range(rounds):
        for name in (OLD, NEW) if round % 2 else (NEW, OLD):
            rates[name].append(drain(servers, side, BACKLOG, roots[name]).value)
    return {side.name: rates}


def table(rev: str, figures: Figures) -> str:
    """Medians as a Markdown table; the ratio is the median of those of the rounds."""
    head = f"| what | {rev[:12]} | this checkout | new / old |\n|---|---:|---:|---:|\n"
    return head + lines(figures)


def lines(figures: Figures) -> str:
    """The lines of the table."""
    text = []
    for name, rates in figures.items():
        old, new = (statistics.median(rates[side]) for side in (OLD, NEW))
        ratio = statistics.median(n / (o or 1) for o, n in zip(rates[OLD], rates[NEW], strict=True))
        unit = UNITS.get(name, "jobs/s")
        text.append(f"| {name} | {old:,.0f} {unit} | {new:,.0f} | {ratio:.2f} |")
    return "\n".join(text)


if __name__ == "__main__":
    raise SystemExit(main())
