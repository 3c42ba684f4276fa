"""Change the state of exposures, on request of their user."""

from collections.abc import Iterable

from tailrace.db.query import database_now
from tailrace.domains.protection.models import Exposure


def move(user_id: int, ids: Iterable[int], state: str) -> int:
    """Set the state of these exposures of the user; return how many changed. Raises ValueError."""
    if state not in Exposure.State.values:
        raise ValueError(f"{state[:50]!r} is not a state: choose one of {Exposure.State.values}")
    exposures = Exposure.objects.filter(user=user_id, pk__in=list(ids)).exclude(state=state)
    return exposures.update(state=state, moved_at=database_now())
