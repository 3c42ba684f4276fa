"""The handler that rewrites the schedules of a plan whose table was edited."""

import time

from pydantic import BaseModel

from tailrace.jobs.backoff import Backoff
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.jobs.outcomes import Snooze
from tailrace.subscriptions.plans import rewrite

SECONDS = 20
"""A call ends after this; the job continues, so that a worker is free in between."""


class PlanToRewrite(BaseModel):
    plan: int


class RewritePlan(Handler):
    """Give all subscriptions of a plan the schedules of its edited table."""

    name = rewrite.HANDLER
    Payload = PlanToRewrite
    batch_size = 1
    backoff = Backoff(10, 60, 300)

    def handle(self, job: ClaimedJob) -> None:
        ends = time.monotonic() + SECONDS
        done = 0
        while count := rewrite.rewrite_piece(job.payload.plan):
            done += count
            job.progress(done, note="subscriptions since it began or continued")
            job.check_cancelled()
            if time.monotonic() > ends or job.shutting_down():
                raise Snooze("the next subscriptions follow", seconds=0.1)
