"""A second handler of published records, in processes with SANDBOX_INDEX alone."""

import os
from typing import Any

from tailrace.events.publish import Recorded
from tailrace.jobs.handler import ClaimedJob, Handler
from tests.sandbox.indexing.scripted import VARIABLE
from tests.sandbox.models import Effect


class RecordLog(Handler):
    """Writes down what was published, but for titles that begin with `unlogged`: then it fails."""

    name = "test.record_log"
    on = ["records.record_published"]

    def wants(self, event: Recorded) -> bool:
        return bool(os.environ.get(VARIABLE))

    def handle(self, job: ClaimedJob) -> Any:
        title = job.event.payload.title
        if title.startswith("unlogged"):
            raise OSError(f"{title}, as asked")
        Effect.objects.create(
            handler=self.name, job_id=job.id, claim_no=job.claim_no, note=title, process=os.getpid()
        )
