"""One run: notifications come in through the real poller while workers die and Redis forgets."""

import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.house import House, house, wait_until
from tests.chaos.judge import Judgement, judge


@dataclass(frozen=True)
class Plan:
    """How much of each; `seconds` is the time over which events, kills and flushes are spread."""

    events: int = 10_000
    kills: int = 20
    flushes: int = 2
    seconds: float = 60
    lease: float = 10
    settle_seconds: float = 300
    seed: int = 1


def run(plan: Plan, folder: Path) -> tuple[Judgement, House]:
    """Run the plan; return the judgement, and the house for what it tells of its kills."""
    with house(folder, plan.lease, plan.seed) as built:
        built.start_backend()
        for name in ("worker1", "worker2"):
            built.start_worker(name)
        for name in ("beat1", "beat2"):
            built.start_beat(name)
        wait_until(
            lambda: _count(built, "jobs_pulse WHERE name LIKE 'worker:%'") == 2, 60, "workers"
        )
        load = threading.Thread(target=_send, args=(built, plan))
        load.start()
        _do_harm(built, plan)
        load.join()
        try:
            wait_until(lambda: _has_settled(built, plan.events), plan.settle_seconds, "all settled")
        except TimeoutError as error:
            verdict = judge(built, plan.events)
            verdict.faults.append(str(error))
            return verdict, built
        return judge(built, plan.events), built


def _send(built: House, plan: Plan) -> None:
    """Append notifications to the backend's log at an even pace."""
    began = time.monotonic()
    chance = random.Random(plan.seed)
    for number in range(plan.events):
        built.backend.notify(*_notification(chance, number))
        ahead = plan.seconds * number / plan.events - (time.monotonic() - began)
        if ahead > 0.05:
            time.sleep(ahead)


def _notification(chance: random.Random, number: int) -> tuple[str, dict[str, str]]:
    project, package = f"home:user{number % 50}", f"package{number % 7}"
    user = f"user{number % 50}"
    type, keys = chance.choice(
        [
            ("SRCSRV_COMMIT", {"user": user, "rev": str(number), "comment": f"change {number}"}),
            ("BUILD_SUCCESS", {"repository": "standard", "arch": "x86_64", "rev": "1"}),
            ("BUILD_FAIL", {"repository": "standard", "arch": "x86_64", "rev": "1"}),
            ("SRCSRV_VERSION_CHANGE", {"user": user, "newversion": str(number)}),
            ("NO_SUCH_EVENT", {"number": str(number)}),
        ]
    )
    return type, keys | {"project": project, "package": package}


def _do_harm(built: House, plan: Plan) -> None:
    """Kill and flush at random times within the run."""
    harms = ["kill"] * plan.kills + ["flush"] * plan.flushes
    times = sorted(built.random.uniform(1, plan.seconds) for _ in harms)
    built.random.shuffle(harms)
    began = time.monotonic()
    for at, harm in zip(times, harms, strict=True):
        time.sleep(max(at - (time.monotonic() - began), 0))
        if harm == "kill":
            _while_jobs_run(built)
            built.kill_a_worker()
        else:
            built.flush_broker()


def _while_jobs_run(built: House) -> None:
    """Wait a moment for a job to run: a kill between two drains would show little."""
    until = time.monotonic() + 2
    with built.connect() as database:
        running = "SELECT 1 FROM jobs_job WHERE state = 'running' AND event_id IS NOT NULL LIMIT 1"
        while time.monotonic() < until and database.execute(running).fetchone() is None:
            time.sleep(0.001)


def _has_settled(built: House, events: int) -> bool:
    live = "jobs_job WHERE event_id IS NOT NULL AND state IN ('waiting', 'pending', 'running')"
    return (
        _count(built, "events_event WHERE source LIKE 'obs:chaos:%'") >= events
        and _count(built, live) == 0
    )


def _count(built: House, what: str) -> int:
    with built.connect() as database:
        row = database.execute(f"SELECT count(*) FROM {what}").fetchone()
    return int(row[0]) if row else 0
