"""The outlet: a batch of jobs of one topic, sent and settled."""

from collections.abc import Sequence

from django.conf import settings

from domains.photos.kafka.client import Missing
from domains.photos.kafka.message import Message
from domains.photos.kafka.producer import Producer, producer
from events.publish import Recorded
from jobs import breaker
from jobs.claimed import ClaimedJob
from jobs.destination import UNTRIED, Fate, Verdict, left_alone, release, settle, tell_breaker
from jobs.handler import Backoff, Handler


class Outlet(Handler):
    """Send events to a topic, where a cluster is named; without one they owe no job.

    A topic that cannot be written to is left alone by all workers (jobs/breaker.py), its jobs
    waiting without a charge. The topics share a cluster and nothing else: each has a breaker of
    its own, for one may be missing or forbidden while the other is fine.
    """

    batch_size = 100
    max_attempts = 12
    backoff = Backoff(5, 15, 60, 300, 900, 3600)
    claim_timeout = 60
    time_limit = 120

    def topic(self) -> str:
        """Return the topic's name."""
        raise NotImplementedError

    def key(self, event: Recorded) -> str:
        """Return what the messages are ordered by."""
        raise NotImplementedError

    def wants(self, event: Recorded) -> bool:
        return bool(settings.PHOTOS_KAFKA_BROKERS)

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        if not settings.PHOTOS_KAFKA_BROKERS:
            for job in jobs:
                job.fail("PHOTOS_KAFKA_BROKERS names no cluster any more")
            return
        name = f"{self.name}:{self.topic()}"
        gate = breaker.gate(name)
        if gate.wait:
            left_alone(jobs, f"{name} is left alone after {gate.failures} failures", gate.wait)
            return
        verdicts = self._send(jobs, gate)
        wait = tell_breaker(name, gate, verdicts)
        settle(jobs, verdicts, gate, wait)
        if gate.one and not wait:
            release(self.name, None, by=f"{name}, which is back")

    def _send(self, jobs: Sequence[ClaimedJob], gate: breaker.Gate) -> list[Verdict]:
        """Send all; through a half-open breaker one, and the others if it arrives."""
        try:
            through = producer()
        except Exception as error:
            # The package is missing, or the client does not take its options: of any kind.
            verdict = Verdict(Fate.DOWN, _why(error))
            return [verdict] + [UNTRIED] * (len(jobs) - 1)
        one = jobs[:1] if gate.one else jobs
        verdicts = self._send_these(one, through)
        rest = jobs[len(one) :]
        if verdicts[0].fate is Fate.SENT and rest:
            return verdicts + self._send_these(rest, through)
        return verdicts + [UNTRIED] * len(rest)

    def _send_these(self, jobs: Sequence[ClaimedJob], through: Producer) -> list[Verdict]:
        """An event that is gone is refused, and the others go."""
        verdicts: dict[int, Verdict] = {}
        messages: list[Message] = []
        for job in jobs:
            if job.event is None:
                verdicts[job.id] = Verdict(Fate.REFUSED, "its event is gone")
            else:
                messages.append(Message.of(job.event, self.topic(), self.key(job.event)))
        sent = iter(through.send(messages) if messages else [])
        return [verdicts.get(job.id) or next(sent) for job in jobs]


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, Missing) else f"PHOTOS_KAFKA_OPTION_…: {error}"[:500]
