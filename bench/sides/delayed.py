"""Four Celery tasks sent after commit: what publishing costs those who use Celery as it is."""

from celery import shared_task

from tailrace.config.celery import app  # noqa: F401  (the tasks are this application's)


@shared_task(name="bench.delayed", ignore_result=True)
def delayed(number: int) -> None:
    """Do nothing."""


def delay_four() -> None:
    """Send four tasks when the caller's transaction commits."""
    for number in range(4):
        delayed.delay_on_commit(number)
