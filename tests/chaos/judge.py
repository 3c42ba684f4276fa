"""The judge: compares what was sent, what was settled, and which effects happened."""

import json
from collections import Counter
from dataclasses import dataclass, field, fields

from jobs.states import MOVES, State
from tests.chaos.house import House


@dataclass
class Judgement:
    """What the run showed; `faults` is empty when nothing was lost, doubled or stuck."""

    events: int = 0
    jobs: int = 0
    claims: int = 0
    lost_claims: int = 0
    bus_lines: int = 0
    bus_doubled: int = 0
    faults: list[str] = field(default_factory=list)

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.faults.append(otherwise)


def judge(house: House, sent: int) -> Judgement:
    """Look at the database and at the bus file after all has settled."""
    judgement = Judgement()
    with house.connect() as database:
        rows = database.execute(
            "SELECT id, source_id::bigint, type FROM events_event WHERE source LIKE 'obs:chaos:%'"
        ).fetchall()
        jobs = database.execute(
            "SELECT id, event_id, handler, routing_key, state, claim_no, error FROM jobs_job"
            " WHERE event_id IS NOT NULL"
        ).fetchall()
        moves = database.execute(
            "SELECT job, was, became, claim_no, worker FROM chaos_move ORDER BY id"
        ).fetchall()
        lost = database.execute("SELECT job_id FROM jobs_attempt WHERE outcome = 'lost'").fetchall()
    judgement.events, judgement.jobs = len(rows), len(jobs)
    judgement.lost_claims = len(lost)
    _events_are_all_there(judgement, [number for _id, number, _type in rows], sent)
    _each_job_is_owed_and_done(judgement, house, jobs)
    _each_claim_is_settled_once(judgement, moves)
    _the_bus_heard_of_each(judgement, house, jobs, {row[0] for row in lost})
    return judgement


def _events_are_all_there(judgement: Judgement, numbers: list[int], sent: int) -> None:
    missing = set(range(1, sent + 1)) - set(numbers)
    judgement.expect(not missing, f"{len(missing)} events are lost: {sorted(missing)[:5]}")
    judgement.expect(len(numbers) == len(set(numbers)), "an event was recorded twice")
    judgement.expect(len(numbers) <= sent, f"{len(numbers)} events of {sent} that were sent")


def _each_job_is_owed_and_done(judgement: Judgement, house: House, jobs: list) -> None:
    """What fan-out says of each recorded event, computed again here, is what was done."""
    made = Counter((event, handler, key) for _id, event, handler, key, *_ in jobs)
    doubled = [key for key, count in made.items() if count > 1]
    judgement.expect(not doubled, f"owed twice: {doubled[:5]}")
    undone = [job for job in jobs if job[4] not in ("completed", "skipped")]
    judgement.expect(not undone, f"{len(undone)} jobs are not done: {undone[:3]}")
    missing = [key for key in house_owes(house) if key not in made]
    judgement.expect(not missing, f"{len(missing)} jobs are missing: {missing[:5]}")


def house_owes(house: House) -> list[tuple[int, str, str]]:
    """Return (event, handler, routing key) of all jobs that the events owe, but for those that a
    unique key may merge into another event's."""
    from django.conf import settings

    from events.publish import Recorded
    from jobs.fan_out import owed

    backends, settings.BUS_BACKENDS = settings.BUS_BACKENDS, {"file": f"file://{house.bus_file}"}
    try:
        with house.connect() as database:
            columns = ", ".join(column.name for column in fields(Recorded))
            rows = database.execute(f"SELECT {columns} FROM events_event ORDER BY id").fetchall()
        events = [Recorded(*row) for row in rows]
        return [
            (job.event_id or 0, job.handler, job.routing_key)
            for event in events
            for job in owed(event)
            if job.unique_key is None
        ]
    finally:
        settings.BUS_BACKENDS = backends


def _each_claim_is_settled_once(judgement: Judgement, moves: list) -> None:
    ends: Counter[tuple[int, int]] = Counter()
    done: Counter[int] = Counter()
    for job, was, became, claim_no, _worker in moves:
        legal = State(became) in MOVES[State(was)]
        judgement.expect(legal, f"job {job} moved from {was} to {became}")
        if became == "running":
            judgement.claims += 1
        if was == "running":
            ends[job, claim_no] += 1
        if became in ("completed", "skipped"):
            done[job] += 1
    twice = [claim for claim, count in ends.items() if count > 1]
    judgement.expect(not twice, f"claims were settled twice: {twice[:5]}")
    doubled = [job for job, count in done.items() if count > 1]
    judgement.expect(not doubled, f"jobs were done by two claims: {doubled[:5]}")


def _the_bus_heard_of_each(judgement: Judgement, house: House, jobs: list, lost: set[int]) -> None:
    lines = house.bus_file.read_text().splitlines()
    judgement.bus_lines = len(lines)
    heard = Counter(int(json.loads(line)["id"]) for line in lines)
    owed = {event: job for job, event, handler, *_ in jobs if handler == "builds.notify_backend"}
    silent = set(owed) - set(heard)
    judgement.expect(not silent, f"the bus never heard of events {sorted(silent)[:5]}")
    judgement.expect(set(heard) <= set(owed), "the bus heard of an event that was not owed to it")
    doubled = [event for event, count in heard.items() if count > 1]
    judgement.bus_doubled = len(doubled)
    strange = [event for event in doubled if owed[event] not in lost]
    judgement.expect(
        not strange,
        f"doubled though no worker was lost between effect and settlement: {strange[:5]}",
    )
