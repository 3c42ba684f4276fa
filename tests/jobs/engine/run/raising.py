"""A call of a handler that raises."""

from collections.abc import Callable

from tailrace.jobs.handler import ClaimedJob


def raising(error: BaseException) -> Callable[[ClaimedJob], None]:
    """Return a call that raises this."""

    def call(job: ClaimedJob) -> None:
        raise error

    return call
