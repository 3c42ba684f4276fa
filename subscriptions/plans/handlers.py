"""The handler that rewrites the schedules of a plan whose table was edited."""

import time

from pydantic import BaseModel

from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Snooze
from tailrace.subscriptions.plans import rewrite

SECONDS = 20
"""A claim ends after this time, and the job is snoozed, so that the worker can run other jobs."""


class PlanToRewrite(BaseModel):
    plan: int


class RewritePlan(Handler):
    """Rewrite the schedules of all subscriptions of a plan whose table was edited."""

    name = rewrite.HANDLER
    Payload = PlanToRewrite
    batch_size = 1
    backoff = Backoff(10, 60, 300)

    def handle(self, job: ClaimedJob) -> None:
        ends = time.monotonic() + SECONDS
        done = 0
        while count := rewrite.rewrite_piece(job.payload.plan):
            done += count
            job.progress(done, note="subscriptions since the last start")
            job.check_cancelled()
            if time.monotonic() > ends or job.shutting_down():
                raise Snooze("continues with the next subscriptions", seconds=0.1)
