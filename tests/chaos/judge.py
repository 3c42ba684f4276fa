"""The judge: compares what was said, what was settled, and which effects happened."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from jobs.states import MOVES, State
from tests.chaos import plain
from tests.chaos.house import ROOT, TAILRACE, House
from tests.chaos.load import Load
from tests.chaos.owed import caused, hears

DONE = ("completed", "skipped")
WINDOW = 5.0
"""Seconds over which throughput is taken."""
BACK = 0.95
"""Of the throughput before the fault, to be reached again."""
LATE = 3.0
"""Seconds from the answer to an effect that is behind."""


@dataclass
class Times:
    """Moments of a cell, in CLOCK_MONOTONIC: load starts, harm begins and ends, all is settled."""

    began: float = 0
    harm: float = 0
    over: float = 0
    settled: float = 0


@dataclass
class Judgement:
    """What a cell showed; `faults` is empty if nothing was lost, doubled or stuck."""

    cell: str
    side: str
    events: int = 0
    owed: int = 0
    lost: int = 0
    doubled: int = 0
    """Effects that happened more than once, each told by its stable id."""
    lost_claims: int = 0
    harm: int = 0
    tries_again: int = 0
    back_after: float | None = None
    """Seconds from the end of the harm until throughput was back."""
    late_until: float = 0
    """Seconds from the end of the harm to the last effect that was behind."""
    settled_after: float = 0
    last: str = ""
    """The handler whose job was the last to be done."""
    fell: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    not_here: str = ""

    def expect(self, holds: object, otherwise: str) -> None:
        if not holds:
            self.faults.append(otherwise)


@dataclass(frozen=True)
class Effect:
    at: float
    name: str
    id: str
    claim_no: int


def effects(house: House) -> list[Effect]:
    """All effects so far, in the order in which they happened."""
    lines = (line.split() for line in house.effects.read_text().splitlines())
    return [Effect(float(at), name, id, int(claim)) for at, name, id, claim in lines]


def judge(house: House, load: Load, times: Times) -> Judgement:
    """Look at everything after a cell has settled."""
    found = Judgement(load.name, house.side, events=len(load.said), tries_again=load.tries_again)
    happened = [effect for effect in effects(house) if effect.at >= times.began]
    if house.side == TAILRACE:
        _tailrace(found, house, load, happened)
    else:
        _plain(found, house, load, happened)
    _speed(found, happened, times)
    return found


# --- plain Celery ---


def _plain(found: Judgement, house: House, load: Load, happened: list[Effect]) -> None:
    made = Counter((effect.id, effect.name.removeprefix("plain.")) for effect in happened)
    owed = [(id, name) for id, (number, _) in load.said.items() for name in plain.owed(number)]
    found.owed = len(owed)
    found.lost = sum(key not in made for key in owed)
    found.doubled = sum(count > 1 for count in made.values())
    found.expect(not found.lost, f"{found.lost} effects never happened")


# --- Tailrace ---


def _tailrace(found: Judgement, house: House, load: Load, happened: list[Effect]) -> None:
    with house.engines.connect() as database:
        events = database.execute(
            "SELECT id, source_id, payload FROM events_event WHERE source = 'chaos'"
            " AND source_id LIKE %s",
            [f"{load.name}:%"],
        ).fetchall()
        echoes = database.execute(
            "SELECT e.id, c.id FROM events_event e JOIN events_event c"
            " ON e.source = 'chaos-echo' AND c.id = e.source_id::bigint WHERE c.source_id LIKE %s",
            [f"{load.name}:%"],
        ).fetchall()
        jobs = database.execute(
            "SELECT id, event_id, handler, state, claim_no, error, lane FROM jobs_job"
            " WHERE handler LIKE 'chaos.%%' AND event_id = ANY(%s) ORDER BY id",
            [[row[0] for row in (*events, *echoes)]],
        ).fetchall()
        moves = database.execute(
            "SELECT job, was, became, claim_no, worker FROM chaos_move WHERE job = ANY(%s)"
            " ORDER BY id",
            [[row[0] for row in jobs]],
        ).fetchall()
        ended = database.execute(
            "SELECT job_id, claim_no, outcome FROM jobs_attempt WHERE job_id = ANY(%s)",
            [[row[0] for row in jobs]],
        ).fetchall()
    with house.engines.connect() as database:
        row = database.execute(
            "SELECT handler || ' ' || attempt FROM jobs_job WHERE event_id IS NOT NULL"
            " ORDER BY finished_at DESC LIMIT 1"
        ).fetchone()
        found.last = row[0] if row else ""
    found.owed = len(jobs)
    found.lost_claims = sum(outcome == "lost" for _job, _claim, outcome in ended)
    _events(found, load, [row[1] for row in events])
    _jobs(found, load, events, echoes, jobs)
    _moves(found, moves)
    _order(found, jobs, moves)
    _effects(found, house, jobs, happened, {row[0] for row in ended})
    _builds(found, house, load)
    for kind, ids in house.fsck().items():
        # A rollback brings Leaving back, which was owed nothing while it was gone.
        left = [id for id in ids if not (load.name == "deploy" and "chaos.leaving" in str(id))]
        found.expect(not left, f"fsck: {kind}: {left}")


def _events(found: Judgement, load: Load, ids: list[str]) -> None:
    lost, extra = set(load.said) - set(ids), set(ids) - set(load.said)
    found.lost += len(lost)
    found.expect(not lost, f"{len(lost)} acknowledged events are lost: {sorted(lost)[:5]}")
    found.expect(not extra, f"events stand that were taken back: {sorted(extra)[:5]}")
    found.expect(len(ids) == len(set(ids)), "an event was recorded twice")


def _jobs(found: Judgement, load: Load, events: list, echoes: list, jobs: list) -> None:
    """Each event owes what this list says, once, and all of it was done."""
    made = Counter((event, handler) for _id, event, handler, *_ in jobs)
    doubled = [key for key, count in made.items() if count > 1]
    found.expect(not doubled, f"owed twice: {doubled[:5]}")
    owed = [(id, f"chaos.{name}") for id, _, said in events for name in hears(said["number"])]
    owed += [(id, "chaos.echo") for id, _cause in echoes]
    owed += [(id, f"chaos.{name}") for id, _, said in events for name in caused(said["number"])]
    if load.name == "deploy":  # which code published decides whether this is owed
        owed = [key for key in owed if key[1] != "chaos.leaving"]
    missing = [key for key in owed if key not in made]
    rung = {id for id, _, said in events if "ring" in hears(said["number"])}
    missing += [(id, "its echo") for id in rung - {cause for _id, cause in echoes}]
    found.lost += len(missing)
    found.expect(not missing, f"{len(missing)} jobs are missing: {missing[:5]}")
    undone = [job for job in jobs if job[3] not in DONE and not _as_announced(load, job)]
    found.lost += len(undone)
    found.expect(not undone, f"{len(undone)} jobs are not done: {undone[:3]}")


def _as_announced(load: Load, job: tuple) -> bool:
    """Whether a deploy that removes a handler, or breaks a payload, says so on the job."""
    reasons = {
        "chaos.broken": "payload does not validate",
        "chaos.coming": "no handler is called 'chaos.coming'",
        "chaos.leaving": "no handler is called 'chaos.leaving'",
    }
    _id, _event, handler, state, _claim, error, _lane = job
    reason = reasons.get(handler, "-")
    return load.name == "deploy" and state == "failed" and reason.strip("'") in error


def _moves(found: Judgement, moves: list) -> None:
    ends: Counter[tuple[int, int, str]] = Counter()
    done: Counter[int] = Counter()
    last: dict[int, int] = {}
    for job, was, became, claim_no, worker in moves:
        legal = State(became) in MOVES[State(was)]
        found.expect(legal, f"job {job} moved from {was} to {became}")
        found.expect(claim_no >= last.get(job, 0), f"claim_no of job {job} fell to {claim_no}")
        last[job] = claim_no
        ends[job, claim_no, worker] += was == "running"
        done[job] += became in DONE
    twice = [claim for claim, count in ends.items() if count > 1]
    found.expect(not twice, f"claims were settled twice: {twice[:5]}")
    doubled = [job for job, count in done.items() if count > 1]
    found.expect(not doubled, f"jobs were done by two claims: {doubled[:5]}")


def _order(found: Judgement, jobs: list, moves: list) -> None:
    lanes = {job[0]: job[6] for job in jobs if job[2] == "chaos.ordered"}
    done: dict[str, list[int]] = defaultdict(list)
    for job, _was, became, *_ in moves:
        if job in lanes and became in DONE:
            done[lanes[job]].append(job)
    for lane, order in done.items():
        found.expect(order == sorted(order), f"lane {lane} was not worked in its order")


def _effects(
    found: Judgement, house: House, jobs: list, happened: list[Effect], tried: set[int]
) -> None:
    """Each job that is done has had its effect; one that had it twice was tried twice."""
    made = Counter(int(effect.id) for effect in happened)
    silent = [job for job in jobs if job[3] == "completed" and job[0] not in made]
    found.lost += len(silent)
    found.expect(not silent, f"{len(silent)} jobs are done without effect: {silent[:3]}")
    doubled = [id for id, count in made.items() if count > 1]
    found.doubled = len(doubled)
    # A crash of PostgreSQL may forget a claim, which is not waited for to be on disk.
    crashed = "PostgreSQL crashed" in house.harm
    strange = [id for id in doubled if id not in tried and not crashed]
    found.expect(not strange, f"effects doubled though no claim was lost: {strange[:5]}")


def _builds(found: Judgement, house: House, load: Load) -> None:
    """What came by the poller: every notification once, every job of it, a line for the bus."""
    with house.engines.connect() as database:
        numbers = [
            row[0]
            for row in database.execute(
                "SELECT source_id::bigint FROM events_event WHERE source LIKE 'obs:chaos:%'"
            )
        ]
        jobs = database.execute(
            "SELECT event_id, handler, routing_key, state, error FROM jobs_job"
            " WHERE handler NOT LIKE 'chaos.%' AND event_id IS NOT NULL"
        ).fetchall()
    missing = set(range(1, load.sent + 1)) - set(numbers)
    found.expect(not missing, f"{len(missing)} notifications are lost: {sorted(missing)[:5]}")
    found.expect(len(numbers) == len(set(numbers)), "a notification was recorded twice")
    undone = [job for job in jobs if job[3] not in DONE]
    found.expect(not undone, f"{len(undone)} jobs of builds are not done: {undone[:3]}")
    owed = subprocess.run(
        [sys.executable, "-m", "tests.chaos.owed"],
        cwd=ROOT, env=house.environment, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    made = {(event, handler, key) for event, handler, key, *_ in jobs}
    lacking = [key for key in map(tuple, json.loads(owed.stdout)) if key not in made]
    found.expect(not lacking, f"{len(lacking)} jobs of builds are missing: {lacking[:5]}")
    lines = house.bus_file.read_text().splitlines() if house.bus_file.exists() else []
    heard = {int(json.loads(line)["id"]) for line in lines}
    told = {job[0] for job in jobs if job[1] == "builds.notify_backend"}
    found.expect(told <= heard, f"the bus never heard of events {sorted(told - heard)[:5]}")
    found.expect(heard <= told, "the bus heard of an event that was not owed to it")


# --- speed ---


def _speed(found: Judgement, happened: list[Effect], times: Times) -> None:
    """How soon effects came again as before, and when the last that was behind had come."""
    at = sorted(effect.at for effect in happened)
    before = sum(times.began <= moment < times.harm for moment in at)
    rate = before / (times.harm - times.began)
    found.settled_after = times.settled - times.over
    step = 0
    while times.over + step / 2 + WINDOW <= times.settled and found.back_after is None:
        start = times.over + step / 2
        if sum(start <= moment < start + WINDOW for moment in at) >= BACK * rate * WINDOW:
            found.back_after = step / 2
        step += 1
    found.expect(
        found.back_after is not None and found.back_after <= 30,
        f"throughput was not back at {BACK:.0%} of {rate:.0f}/s within 30 s",
    )
