"""Move exposures between their states, as their user says."""

from collections.abc import Iterable

from tailrace.db.query import database_now
from tailrace.domains.protection.models import Exposure


def move(user_id: int, ids: Iterable[int], state: str) -> int:
    """Give these exposures of the user this state; return how many had another one."""
    if state not in Exposure.State.values:
        raise ValueError(f"{state[:50]!r} is no state: choose one of {Exposure.State.values}")
    exposures = Exposure.objects.filter(user=user_id, pk__in=list(ids)).exclude(state=state)
    return exposures.update(state=state, moved_at=database_now())
