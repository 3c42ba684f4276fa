"""verbs: retry, cancel and replay as operators do them: in bounded batches, audited, by name."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from jobs import audit, operate
from jobs.models import Job
from jobs.states import LIVE, REPLAYABLE, State

PERMISSION = "jobs.replay_job"
BATCH = 500
MOST = 10_000
"""Jobs per click; an operator who wants more clicks again."""


@dataclass(frozen=True, slots=True)
class Verb:
    """Something an operator does to jobs in certain states."""

    name: str
    did: str
    title: str
    operation: Callable[[Sequence[int], str], operate.Done]
    states: tuple[State, ...]


VERBS = {
    verb.name: verb
    for verb in (
        Verb("retry", "retried", "Retry now", operate.retry_now, (State.PENDING,)),
        Verb("cancel", "cancelled", "Cancel", operate.cancel, LIVE),
        Verb("replay", "replayed", "Replay", operate.replay, REPLAYABLE),
    )
}


@dataclass(slots=True)
class Outcome:
    """What became of the chosen jobs."""

    changed: int = 0
    asked: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    more: bool = False

    def words(self, verb: Verb) -> str:
        """Say it in a sentence or two."""
        said = [f"{_jobs(self.changed)} {verb.did}."]
        if self.asked:
            said.append(f"{_jobs(self.asked)} running, asked to stop.")
        said += [f"{_jobs(count)} left alone: {why}." for why, count in self.refused.items()]
        if self.more:
            said.append(f"There are more; one click changes at most {MOST}.")
        return " ".join(said)


def apply(user: Any, verb: Verb, chosen: QuerySet[Job], most: int = MOST) -> Outcome:
    """Do it to the chosen jobs, newest first, batch by batch; each batch is one transaction."""
    outcome, last = Outcome(), None
    jobs = chosen.order_by("-pk").values_list("pk", "handler")
    while not outcome.more:
        batch = list((jobs if last is None else jobs.filter(pk__lt=last))[:BATCH])
        if not batch:
            break
        last, most = batch[-1][0], most - len(batch)
        _apply(user, verb, dict(batch), outcome)
        outcome.more = most <= 0 and jobs.filter(pk__lt=last).exists()
    return outcome


def _apply(user: Any, verb: Verb, batch: dict[int, str], outcome: Outcome) -> None:
    with transaction.atomic():
        done = verb.operation(list(batch), user.get_username())
        changed, asked = ((id, batch.get(id, "job")) for id in done.ids), done.asked
        audit.record(user, Job, verb.did, [(id, f"{name} {id}") for id, name in changed])
        audit.record(user, Job, "asked to stop", [(id, f"{batch[id]} {id}") for id in asked])
    outcome.changed += len(done.ids)
    outcome.asked += len(asked)
    outcome.refused.update(done.refused.values())


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"
