"""`make chaos`: the full run, on the embedded engines or on DATABASE_URL and BROKER_URL."""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import django

from tests.addresses import address

ROOT = Path(__file__).parents[2]


def main() -> int:
    arguments = _arguments()
    _engines()
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    from tests.chaos.run import Plan, run

    plan = Plan(
        events=arguments.events, kills=arguments.kills, flushes=arguments.flushes,
        seconds=arguments.seconds, lease=arguments.lease, seed=arguments.seed,
    )  # fmt: skip
    print(f"chaos: seed {plan.seed}, {plan}", flush=True)
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="tailrace-chaos-"))
    judgement, house = run(plan, folder)
    print(f"took {time.monotonic() - began:.0f} s; logs are in {folder}")
    print(f"killed: {len(house.kills)} times ({', '.join(house.kills)})")
    print(
        f"{judgement.events} events, {judgement.jobs} jobs, {judgement.claims} claims of which"
        f" {judgement.lost_claims} lost their worker; the bus got {judgement.bus_lines} lines,"
        f" {judgement.bus_doubled} ids more than once"
    )
    for fault in judgement.faults:
        print(f"FAULT: {fault}")
    print("nothing lost, nothing doubled" if not judgement.faults else "chaos won")
    return 1 if judgement.faults else 0


def _engines() -> None:
    """Start engines of our own for whatever no variable names."""
    from config import embedded

    var = ROOT / "var" / "chaos"
    wanted = embedded.Wanted(
        postgres=not os.environ.get("DATABASE_URL"), valkey=not os.environ.get("BROKER_URL")
    )
    embedded.ensure(var, wanted)
    if wanted.postgres:
        os.environ["DATABASE_URL"] = address(embedded.database(var))
    if wanted.valkey:
        os.environ["BROKER_URL"] = embedded.broker_url(var)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--flushes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60, help="over which it is all spread")
    parser.add_argument("--lease", type=float, default=10, help="claim_timeout of all handlers")
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--seed", type=int, default=seed, help="or CHAOS_SEED")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
