"""The verdict on the whole system: healthy, or the causes that keep jobs from being done."""

import importlib
import pkgutil
from dataclasses import dataclass, replace
from functools import cache

import structlog
from django.db import DatabaseError

from tailrace.db import connections
from tailrace.db.limits import reason, statement_limit
from tailrace.environment.discovery import subclasses
from tailrace.jobs.platform.inspection.recent import Recent
from tailrace.jobs.platform.inspection.storage.connections import Connections, are_taken
from tailrace.jobs.platform.inspection.verdict import causes as folder
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts
from tailrace.jobs.platform.inspection.verdict.causes.engines.connections_taken import refused

log = structlog.get_logger(__name__)

STATEMENT_SECONDS = 3
CACHE_SECONDS = 3.0
"""The default age up to which a cached verdict is used."""


@dataclass(frozen=True, slots=True)
class Health:
    """The causes that keep jobs from being done now, worst first; none if the system is healthy."""

    causes: tuple[Cause, ...] = ()
    workers: int = 0
    """The number of live workers."""
    connections: Connections | None = None
    """The connections to the database; None if it did not answer."""

    @property
    def healthy(self) -> bool:
        return not self.causes

    @property
    def status(self) -> str:
        return "healthy" if self.healthy else "degraded"

    @property
    def codes(self) -> list[str]:
        """The codes of its causes, worst first, without duplicates."""
        return list(dict.fromkeys(cause.code for cause in self.causes))


@cache
def checks() -> tuple[Check, ...]:
    """Return the checks of all modules in `causes/` and of apps, by rank."""
    for info in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
        importlib.import_module(info.name)
    kinds = [cls() for cls in subclasses(Check) if cls.code]
    return tuple(sorted(kinds, key=lambda check: (check.rank, check.code)))


def check_of(code: str) -> Check | None:
    return next((check for check in checks() if check.code == code), None)


def work_out() -> Health:
    """Run all checks, by a bounded number of statements with time limits, and return the verdict.
    If the database does not answer, that is the only cause."""
    try:
        with connections.atomic(), statement_limit(STATEMENT_SECONDS):
            facts = Facts()
            named = [
                replace(cause, code=check.code)
                for check in checks()
                for cause in check.causes(facts)
            ]
            causes = tuple(sorted(named, key=lambda cause: cause.fades))
            return Health(causes, len(facts.pools), facts.connections)
    except DatabaseError as error:
        log.warning("verdict.database_away", error=reason(error))
        if are_taken(error):
            return Health((refused(),))
        words = f"The database does not answer: {reason(error).partition(':')[0]}."
        return Health((Cause(words, code="database_away"),))


_recent = Recent(lambda: work_out())


def current(max_age: float = CACHE_SECONDS) -> Health:
    """Return a cached verdict that is at most `max_age` seconds old."""
    return _recent.get(max_age)


forget = _recent.forget
