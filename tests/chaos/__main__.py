"""`make chaos`: every fault, one after the other, on engines of the run's own.

CELL=name,name chooses, CHAOS_SEED replays the same choices, SIDE=early,late runs plain Celery
through those faults that say something of it.
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
from tests.chaos.house import ROOT, SIDES, TAILRACE, house
from tests.chaos.judge import Judgement
from tests.chaos.run import run


def main() -> int:
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="tailrace-chaos-"))
    folder.chmod(0o755)
    print(f"chaos: CHAOS_SEED={arguments.seed}; logs are in {folder}", flush=True)
    began, found = time.monotonic(), []
    for side in arguments.side:
        names = arguments.cell or of(side)
        place = folder / side
        place.mkdir()
        with house(place, side, arguments.seed) as built:
            for name in names:
                if side != TAILRACE and not CELLS[name].plain:
                    continue
                found.append(run(built, name))
                print(line(found[-1]), flush=True)
                for fault in found[-1].faults:
                    print(f"    {fault}", flush=True)
    report = _write(found, arguments.seed)
    print(f"took {time.monotonic() - began:.0f} s; {report} has the figures")
    ours = [one for one in found if one.side == TAILRACE and one.faults]
    if not any(one.faults for one in found):
        shutil.rmtree(folder)
    if any(one.side == TAILRACE for one in found):
        print("chaos won" if ours else "nothing lost, nothing stuck")
    return 1 if ours else 0


def line(one: Judgement) -> str:
    """A cell in a line."""
    if one.not_here:
        return f"{one.side:9}{one.cell:14} not run: {one.not_here}"
    back = "never" if one.back_after is None else f"{one.back_after:.1f} s"
    return (
        f"{one.side:9}{one.cell:14}{'FAILED' if one.faults else 'held':7}{one.harm:3} faults,"
        f" {one.events:5} events, {one.owed:6} owed, {one.lost} lost, {one.doubled} doubled,"
        f" {one.lost_claims} claims lost; as before after {back},"
        f" settled after {one.settled_after:.0f} s{'; fell: ' if one.fell else ''}"
        f"{', '.join(one.fell)}"
    )


def _write(found: list[Judgement], seed: int) -> Path:
    """Write what was found as JSON, newest under its time."""
    path = ROOT / "var" / "chaos" / time.strftime("%Y%m%d-%H%M%S.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    packages = {name: version(name) for name in ("django", "celery", "kombu", "redis", "psycopg")}
    said = {
        "seed": seed,
        "cores": os.cpu_count(),
        "packages": packages,
        "cells": [asdict(one) | {"what": CELLS[one.cell].what} for one in found],
    }
    path.write_text(json.dumps(said, indent=1))
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
