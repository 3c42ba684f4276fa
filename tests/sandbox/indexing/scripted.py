"""An index that does what the titles of records say, in processes with SANDBOX_INDEX alone."""

import os
import signal
import time
from collections.abc import Collection, Sequence

from django.db.models import QuerySet

from tailrace.domains.records.handlers.indexing import IndexRecord
from tailrace.domains.records.models import Record
from tailrace.domains.records.search.indexing.backends import IndexBackend
from tests.sandbox.models import Effect

VARIABLE = "SANDBOX_INDEX"
"""The size of its batches."""
LEASE = "SANDBOX_INDEX_LEASE"
"""Seconds of a claim of any index."""
NAME = "scripted"

if os.environ.get(VARIABLE):
    IndexRecord.claim_timeout = float(os.environ.get(LEASE, IndexRecord.claim_timeout))

    class ScriptedIndex(IndexBackend):
        """Writes down what it indexed, by which process; then does what the first words say."""

        name = NAME
        batch_size = int(os.environ[VARIABLE])

        def index(self, records: Sequence[Record]) -> None:
            for record in records:
                if record.title.startswith("raise"):
                    raise OSError(f"{record.title}, as asked")
            Effect.objects.bulk_create(
                Effect(
                    handler=NAME,
                    job_id=record.pk,
                    claim_no=len(records),
                    note=record.title,
                    process=os.getpid(),
                )
                for record in records
            )
            for word in {record.title.split()[0] for record in records}:
                _do(word)

        def remove(self, ids: Collection[int]) -> None:
            Effect.objects.filter(handler=NAME, job_id__in=ids).delete()

        def search(self, text: str, records: QuerySet[Record], limit: int) -> list[int]:
            return []


def _do(word: str) -> None:
    match word:
        case "wait":
            time.sleep(3600)
        case "slow":
            time.sleep(2)
        case "outlast":
            time.sleep(2 * IndexRecord.claim_timeout)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop" if Effect.objects.filter(note=word).count() == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
