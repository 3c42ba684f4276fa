"""`make chaos`: every fault, one after the other, on new engines.

CELL=name,name chooses, CHAOS_SEED replays the same choices, SIDE=early,late runs plain Celery
through those faults that apply to it.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from tests.chaos.cells import CELLS, of
from tests.chaos.deployment import ROOT, SIDES, TAILRACE, deployment
from tests.chaos.run import run
from tests.chaos.verify import Result


def main() -> int:
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="tailrace-chaos-"))
    folder.chmod(0o755)
    print(f"chaos: CHAOS_SEED={arguments.seed}; logs are in {folder}", flush=True)
    began, results = time.monotonic(), []
    for side in arguments.side:
        names = arguments.cell or of(side)
        place = folder / side
        place.mkdir()
        with deployment(place, side, arguments.seed) as built:
            for name in names:
                if side != TAILRACE and not CELLS[name].plain:
                    continue
                results.append(run(built, name))
                print(line(results[-1]), flush=True)
                for problem in filter(None, [*results[-1].problems, results[-1].slow]):
                    print(f"    {problem}", flush=True)
    report = _write(results, arguments.seed)
    print(f"took {time.monotonic() - began:.0f} s; {report} has the figures")
    ours = [result for result in results if result.side == TAILRACE and result.problems]
    if not any(result.problems for result in results):
        shutil.rmtree(folder)
    if any(result.side == TAILRACE for result in results):
        print("chaos won" if ours else "nothing lost, nothing stuck")
    return 1 if ours else 0


def line(result: Result) -> str:
    """A cell in a line."""
    if result.unavailable:
        return f"{result.side:9}{result.cell:14} not run: {result.unavailable}"
    back = "never" if result.recovered_after is None else f"{result.recovered_after:.1f} s"
    outcome = "FAILED" if result.problems else "held"
    text = (
        f"{result.side:9}{result.cell:14}{outcome:7}{result.faults:3} faults,"
        f" {result.events:5} events, {result.expected:6} expected, {result.lost} lost,"
        f" {result.doubled} doubled, {result.lost_claims} claims lost;"
        f" throughput back after {back}, settled after {result.settled_after:.0f} s"
    )
    return f"{text}; crashed: {', '.join(result.crashed)}" if result.crashed else text


def _write(results: list[Result], seed: int) -> Path:
    """Write the results as JSON into a file named by the time."""
    path = ROOT / "var" / "chaos" / time.strftime("%Y%m%d-%H%M%S.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    packages = {name: version(name) for name in ("django", "celery", "kombu", "redis", "psycopg")}
    report = {
        "seed": seed,
        "cores": os.cpu_count(),
        "packages": packages,
        "cells": [asdict(result) | {"what": CELLS[result.cell].what} for result in results],
    }
    path.write_text(json.dumps(report, indent=1))
    return path


def _names(known: list[str]):
    def split(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return split


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cell", type=_names(list(CELLS)), default=[])
    parser.add_argument("--side", type=_names(list(SIDES)), default=[TAILRACE])
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--seed", type=int, default=seed, help="or CHAOS_SEED")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
