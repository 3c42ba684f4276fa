"""Compare what was published, what was settled, and which effects happened."""

import json
import subprocess
from bisect import bisect
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tailrace.jobs.runtime.states import MOVES, State
from tests import forks
from tests.chaos import plain_celery
from tests.chaos.deployment import ROOT, TAILRACE, Deployment
from tests.chaos.expected_jobs import caused, expected
from tests.chaos.load import Load

DONE = ("completed", "skipped")
WINDOW = 5.0
"""Seconds over which throughput is taken."""
BACK = 0.95
"""Of the throughput before the fault, to be reached again."""
BACK_SECONDS = 30.0
"""Seconds after the fault in which it is to be reached."""


@dataclass
class Times:
    """Moments of a cell, in CLOCK_MONOTONIC."""

    began: float = 0
    """The load starts."""
    fault_began: float = 0
    fault_ended: float = 0
    settled: float = 0
    """No job is left to do."""


@dataclass
class Result:
    """The result of a cell; `problems` is empty if nothing was lost, doubled or stuck."""

    cell: str
    side: str
    events: int = 0
    expected: int = 0
    """Jobs, or effects of plain Celery."""
    lost: int = 0
    doubled: int = 0
    """Effects that happened more than once, by their stable ids."""
    lost_claims: int = 0
    faults: int = 0
    """Faults that were injected."""
    tries_again: int = 0
    recovered_after: float | None = None
    """Seconds from the end of the faults until throughput was back."""
    settled_after: float = 0
    last: str = ""
    """The handler whose job finished last."""
    crashed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    slow: str = ""
    """Set if throughput was not back in time: how fast a machine is proves nothing lost."""
    unavailable: str = ""

    def expect(self, holds: object, otherwise: str) -> None:
        if not holds:
            self.problems.append(otherwise)


@dataclass(frozen=True)
class Effect:
    at: float
    name: str
    id: str
    claim_no: int


def effects(deployment: Deployment) -> list[Effect]:
    """All effects so far, in the order in which they happened."""
    lines = (line.split() for line in deployment.effects.read_text().splitlines())
    return [Effect(float(at), name, id, int(claim)) for at, name, id, claim in lines]


def verify(deployment: Deployment, load: Load, times: Times) -> Result:
    """Check everything after a cell has settled."""
    result = Result(
        load.name, deployment.side, events=len(load.acknowledged), tries_again=load.tries_again
    )
    result.expect(not load.unanswered, f"never answered: {load.unanswered}")
    happened = [effect for effect in effects(deployment) if effect.at >= times.began]
    if deployment.side == TAILRACE:
        _tailrace(result, deployment, load, happened)
    else:
        _plain(result, deployment, load, happened)
    _speed(result, happened, times)
    return result


# --- plain Celery ---


def _plain(result: Result, deployment: Deployment, load: Load, happened: list[Effect]) -> None:
    made = Counter((effect.id, effect.name.removeprefix("plain.")) for effect in happened)
    wanted = [
        (id, name)
        for id, (number, _) in load.acknowledged.items()
        for name in plain_celery.expected(number)
    ]
    result.expected = len(wanted)
    result.lost = sum(key not in made for key in wanted)
    result.doubled = sum(count > 1 for count in made.values())
    result.expect(not result.lost, f"{result.lost} effects never happened")


# --- Tailrace ---


def _tailrace(result: Result, deployment: Deployment, load: Load, happened: list[Effect]) -> None:
    with deployment.engines.connect() as database:
        events = database.execute(
            "SELECT id, source_id, payload FROM tailrace_events_event WHERE source = 'chaos'"
            " AND source_id LIKE %s",
            [f"{load.name}:%"],
        ).fetchall()
        echoes = database.execute(
            "SELECT e.id, c.id FROM tailrace_events_event e JOIN tailrace_events_event c"
            " ON e.source = 'chaos-echo' AND c.id = e.source_id::bigint WHERE c.source_id LIKE %s",
            [f"{load.name}:%"],
        ).fetchall()
        jobs = database.execute(
            "SELECT id, event_id, handler, state, claim_no, error, lane FROM tailrace_jobs_job"
            " WHERE handler LIKE 'chaos.%%' AND event_id = ANY(%s) ORDER BY id",
            [[row[0] for row in (*events, *echoes)]],
        ).fetchall()
        moves = database.execute(
            "SELECT job, was, became, claim_no, worker FROM chaos_move WHERE job = ANY(%s)"
            " ORDER BY id",
            [[row[0] for row in jobs]],
        ).fetchall()
        ended = database.execute(
            "SELECT job_id, claim_no, outcome FROM tailrace_jobs_attempt WHERE job_id = ANY(%s)",
            [[row[0] for row in jobs]],
        ).fetchall()
        tried = database.execute(  # those of schedules, too, which have no event
            "SELECT DISTINCT job_id FROM tailrace_jobs_attempt WHERE job_id = ANY(%s)",
            [[int(effect.id) for effect in happened]],
        ).fetchall()
    with deployment.engines.connect() as database:
        row = database.execute(
            "SELECT handler || ' ' || attempt FROM tailrace_jobs_job WHERE event_id IS NOT NULL"
            " ORDER BY finished_at DESC LIMIT 1"
        ).fetchone()
        result.last = row[0] if row else ""
    result.expected = len(jobs)
    result.lost_claims = sum(outcome == "lost" for _job, _claim, outcome in ended)
    _events(result, load, [row[1] for row in events])
    _jobs(result, load, events, echoes, jobs)
    _moves(result, moves)
    _order(result, jobs, moves)
    _effects(result, deployment, jobs, happened, {row[0] for row in tried})
    _builds(result, deployment, load)
    for kind, ids in deployment.fsck().items():
        # The rollback of the deploy cell, this one or one before it, brings Leaving back, which got
        # no jobs while it was gone. Its jobs of this load are compared above.
        left = [id for id in ids if "chaos.leaving" not in str(id)]
        result.expect(not left, f"fsck: {kind}: {left}")


def _events(result: Result, load: Load, ids: list[str]) -> None:
    lost, extra = set(load.acknowledged) - set(ids), set(ids) - set(load.acknowledged)
    result.lost += len(lost)
    result.expect(not lost, f"{len(lost)} acknowledged events are lost: {sorted(lost)[:5]}")
    result.expect(not extra, f"events exist that were never acknowledged: {sorted(extra)[:5]}")
    result.expect(len(ids) == len(set(ids)), "an event was recorded twice")


def _jobs(result: Result, load: Load, events: list, echoes: list, jobs: list) -> None:
    """Each event has the expected jobs, once, and all of them are done."""
    made = Counter((event, handler) for _id, event, handler, *_ in jobs)
    doubled = [key for key, count in made.items() if count > 1]
    result.expect(not doubled, f"jobs created twice: {doubled[:5]}")
    wanted = [
        (id, f"chaos.{name}") for id, _, payload in events for name in expected(payload["number"])
    ]
    wanted += [(id, "chaos.echo") for id, _cause in echoes]
    wanted += [
        (id, f"chaos.{name}") for id, _, payload in events for name in caused(payload["number"])
    ]
    if load.name == "deploy":  # whether this job exists depends on the code that published
        wanted = [key for key in wanted if key[1] != "chaos.leaving"]
    missing = [key for key in wanted if key not in made]
    ringing = {id for id, _, payload in events if "ring" in expected(payload["number"])}
    missing += [(id, "its echo") for id in ringing - {cause for _id, cause in echoes}]
    result.lost += len(missing)
    result.expect(not missing, f"{len(missing)} jobs are missing: {missing[:5]}")
    undone = [job for job in jobs if job[3] not in DONE and not _failed_as_expected(load, job)]
    result.lost += len(undone)
    result.expect(not undone, f"{len(undone)} jobs are not done: {undone[:3]}")


def _failed_as_expected(load: Load, job: tuple) -> bool:
    """Whether the job failed as it must when a deploy removes its handler or breaks its payload."""
    reasons = {
        "chaos.broken": "payload does not validate",
        "chaos.coming": "no handler is called 'chaos.coming'",
        "chaos.leaving": "no handler is called 'chaos.leaving'",
    }
    _id, _event, handler, state, _claim, error, _lane = job
    reason = reasons.get(handler, "-")
    return load.name == "deploy" and state == "failed" and reason.strip("'") in error


def _moves(result: Result, moves: list) -> None:
    ends: Counter[tuple[int, int, str]] = Counter()
    done: Counter[int] = Counter()
    last: dict[int, int] = {}
    for job, was, became, claim_no, worker in moves:
        legal = State(became) in MOVES[State(was)]
        result.expect(legal, f"job {job} moved from {was} to {became}")
        result.expect(claim_no >= last.get(job, 0), f"claim_no of job {job} fell to {claim_no}")
        last[job] = claim_no
        ends[job, claim_no, worker] += was == "running"
        done[job] += became in DONE
    twice = [claim for claim, count in ends.items() if count > 1]
    result.expect(not twice, f"claims were settled twice: {twice[:5]}")
    doubled = [job for job, count in done.items() if count > 1]
    result.expect(not doubled, f"jobs were done by two claims: {doubled[:5]}")


def _order(result: Result, jobs: list, moves: list) -> None:
    lanes = {job[0]: job[6] for job in jobs if job[2] == "chaos.ordered"}
    done: dict[str, list[int]] = defaultdict(list)
    for job, _was, became, *_ in moves:
        if job in lanes and became in DONE:
            done[lanes[job]].append(job)
    for lane, order in done.items():
        result.expect(order == sorted(order), f"jobs of lane {lane} did not run in order")


def _effects(
    result: Result, deployment: Deployment, jobs: list, happened: list[Effect], tried: set[int]
) -> None:
    """Each job that is done has had its effect; one that had it twice was tried twice."""
    made = Counter(int(effect.id) for effect in happened)
    silent = [job for job in jobs if job[3] == "completed" and job[0] not in made]
    result.lost += len(silent)
    result.expect(not silent, f"{len(silent)} jobs are done without effect: {silent[:3]}")
    doubled = [id for id, count in made.items() if count > 1]
    result.doubled = len(doubled)
    # A crash of PostgreSQL may forget a claim, which is not waited for to be on disk.
    crashed = "PostgreSQL crashed" in deployment.faults
    strange = [id for id in doubled if id not in tried and not crashed]
    result.expect(not strange, f"effects doubled though no claim was lost: {strange[:5]}")


def _builds(result: Result, deployment: Deployment, load: Load) -> None:
    """Events of the poller: each notification once, with all its jobs, and a line for the bus."""
    with deployment.engines.connect() as database:
        numbers = [
            row[0]
            for row in database.execute(
                "SELECT source_id::bigint FROM tailrace_events_event"
                " WHERE source LIKE 'obs:chaos:%'"
            )
        ]
        jobs = database.execute(
            "SELECT event_id, handler, routing_key, state, error FROM tailrace_jobs_job"
            " WHERE handler NOT LIKE 'chaos.%' AND event_id IS NOT NULL"
        ).fetchall()
    missing = set(range(1, load.sent + 1)) - set(numbers)
    result.expect(not missing, f"{len(missing)} notifications are lost: {sorted(missing)[:5]}")
    result.expect(len(numbers) == len(set(numbers)), "a notification was recorded twice")
    undone = [job for job in jobs if job[3] not in DONE]
    result.expect(not undone, f"{len(undone)} jobs of builds are not done: {undone[:3]}")
    wanted = forks.run(
        ["-m", "tests.chaos.expected_jobs"],
        cwd=ROOT, env=deployment.environment, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    made = {(event, handler, key) for event, handler, key, *_ in jobs}
    absent = [key for key in map(tuple, json.loads(wanted.stdout)) if key not in made]
    result.expect(not absent, f"{len(absent)} jobs of builds are missing: {absent[:5]}")
    lines = deployment.bus_file.read_text().splitlines() if deployment.bus_file.exists() else []
    announced = {int(json.loads(line)["id"]) for line in lines}
    sent_to_bus = {job[0] for job in jobs if job[1] == "builds.notify_backend"}
    result.expect(
        sent_to_bus <= announced,
        f"the bus lacks {sorted(sent_to_bus - announced)[:5]}",
    )
    result.expect(announced <= sent_to_bus, "the bus has an event that was not sent to it")


# --- speed ---


def _speed(result: Result, happened: list[Effect], times: Times) -> None:
    """Measure how soon throughput recovered, and when all was settled."""
    result.settled_after = times.settled - times.fault_ended
    result.recovered_after = recovered_after(happened, times, times.settled)
    if result.recovered_after is None or result.recovered_after > BACK_SECONDS:
        rate = _rate_before(happened, times)
        result.slow = f"throughput was not back at {BACK:.0%} of {rate:.0f}/s within 30 s"


def recovered_after(happened: list[Effect], times: Times, until: float) -> float | None:
    """Return how many seconds after the faults WINDOW began, before `until`, in which throughput
    was BACK; None: it is not yet."""
    enough = BACK * _rate_before(happened, times) * WINDOW
    at = sorted(effect.at for effect in happened)
    for step in range(max(int(2 * (until - times.fault_ended - WINDOW)) + 1, 0)):
        start = times.fault_ended + step / 2
        if bisect(at, start + WINDOW) - bisect(at, start) >= enough:
            return step / 2
    return None


def _rate_before(happened: list[Effect], times: Times) -> float:
    before = sum(times.began <= effect.at < times.fault_began for effect in happened)
    return before / (times.fault_began - times.began)
