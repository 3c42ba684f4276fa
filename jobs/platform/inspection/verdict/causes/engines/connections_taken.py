from tailrace.jobs.platform.inspection.storage.connections import Connections
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts, Link

NEARLY_ALL = 0.9
_ADVICE = (
    "End sessions that are not needed, lower the number of workers and of web threads, raise"
    " max_connections, or put PgBouncer before the database."
)


class ConnectionsTaken(Check):
    """The database has few connections left, or none."""

    code = "connections_taken"
    rank = 11
    permission = "tailrace_jobs.view_job"

    def causes(self, facts: Facts) -> list[Cause]:
        used = facts.connections
        return [_cause(used)] if used.used >= NEARLY_ALL * used.possible else []


def _cause(used: Connections) -> Cause:
    of = "" if used.limited_by == "the server" else f" by the limit of {used.limited_by}"
    return Cause(
        f"{used.used:,} of {used.possible:,} possible connections to the database are taken{of}:"
        f" {used.ours:,} by Tailrace, {used.others:,} by others. At the limit, processes cannot"
        " connect, so no job is claimed or published by them.",
        advice=_ADVICE,
        private=f"On the server: {', '.join(used.holders)}.",
        link=Link("Connections", "tailrace:storage"),
    )


def refused() -> Cause:
    """Return the cause if this process could not connect."""
    words = "The database refuses new connections: all possible connections are taken."
    return Cause(words, code=ConnectionsTaken.code, advice=_ADVICE)
