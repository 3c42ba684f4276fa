from tailrace.jobs.handler import ClaimedJob, Handler


class DoNothing(Handler):
    """Does nothing."""

    name = "core_host.do_nothing"

    def handle(self, job: ClaimedJob) -> None:
        """Do nothing."""


class DoNothingElse(DoNothing):
    """The same in another queue, so that two children have work at once."""

    name = "core_host.do_nothing_else"
