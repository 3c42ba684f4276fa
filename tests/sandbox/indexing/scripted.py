"""An index that does what the titles of records say, in processes with SANDBOX_INDEX alone."""

import os
import time
from collections.abc import Collection, Sequence

from django.db.models import QuerySet

from domains.records.indexing.backends import IndexBackend
from domains.records.models import Record
from tests.sandbox.models import Effect

VARIABLE = "SANDBOX_INDEX"
NAME = "scripted"

if os.environ.get(VARIABLE):

    class ScriptedIndex(IndexBackend):
        """Writes down what it indexed, by which process; some titles raise or take long."""

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
            if any(record.title.startswith("wait") for record in records):
                time.sleep(3600)

        def remove(self, ids: Collection[int]) -> None:
            Effect.objects.filter(handler=NAME, job_id__in=ids).delete()

        def search(self, text: str, records: QuerySet[Record], limit: int) -> list[int]:
            return []
