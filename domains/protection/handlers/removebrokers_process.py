"""Do the steps of removal requests at the sites of data brokers: submit, confirm, verify."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tailrace.domains.protection.services.removals import broker_site
from tailrace.domains.protection.services.removals.moves import QUEUE, lane_of
from tailrace.domains.protection.services.removals.steps import (
    Step,
    StepPayload,
    StepResult,
    record_all,
    steps_of,
)
from tailrace.jobs.destinations.delivery import DeliveryResult
from tailrace.jobs.destinations.handler import Delivery, DestinationHandler
from tailrace.jobs.handler import ClaimedJob


@dataclass(slots=True)
class SiteVisit:
    """The step of one job at its broker's site, and the result."""

    step: Step
    result: StepResult | None = None


class RemoveBrokers(DestinationHandler[SiteVisit]):
    """Submit a broker's form, follow its confirmation link, or check whether a person is still
    listed.

    A broker is a destination with its own circuit breaker, concurrency limit and rate limit.
    """

    name = QUEUE
    Payload = StepPayload
    fair = True  # the lane is the broker
    concurrency = 50
    per_destination = 2
    claim_timeout = 90
    time_limit = 60

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, SiteVisit]]:
        for job, step in steps_of(jobs):
            yield job, SiteVisit(step)

    async def send(self, message: SiteVisit) -> DeliveryResult:
        message.result = await broker_site.perform(message.step)
        return message.result.delivery()

    def shared_rate(self, message: SiteVisit) -> tuple[str, float]:
        broker = message.step.broker
        return f"rate of {lane_of(broker.key)}", broker.per_minute / 60

    def finish(self, deliveries: Sequence[Delivery[SiteVisit]]) -> None:
        record_all(
            (each.job, each.message.step.row, each.message.result)
            for each in deliveries
            if each.message.result is not None
        )
