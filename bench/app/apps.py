import os

from django.apps import AppConfig

from bench.app import parts


class BenchConfig(AppConfig):
    """An event with four jobs, and handlers whose effects can be counted."""

    name = "bench.app"
    label = "bench"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let the handlers of records have the size of batches that their benchmark measures; write
        the times of a job's stations if its benchmark asks for them."""
        if parts.FILE:
            parts.watch()
        if size := int(os.environ.get("BENCH_RECORDS_BATCH", "0")):
            set_record_batches(size)


def set_record_batches(size: int) -> None:
    from tailrace.domains.records.handlers import depositions, indexing
    from tailrace.domains.records.search.indexing.backends import IndexBackend, backends

    handlers = (
        depositions.ValidateDeposition,
        depositions.AutoApproveCuration,
        depositions.PublishRecord,
        indexing.IndexRecord,
    )
    backends_in_use: list[type[IndexBackend]] = [type(each) for each in backends().values()]
    for cls in (*handlers, *backends_in_use):
        cls.batch_size = size
