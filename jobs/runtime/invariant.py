"""Invariants: statements that should be true of the stored state, with a query that finds
violations, and a repair.

Write a subclass in `invariants.py` of any installed app. The sweeper checks it at its interval, and
`manage.py fsck` at any time.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from tailrace.environment.discovery import Described, subclasses


class Invariant(Described):
    """A statement that should be true. The docstring describes it in reports.

    Set the functions `found_by` and `repaired_by`, or override `find` and `repair`. Both run in one
    transaction with time limits; one sweep at a time checks an invariant. `find` must be bounded
    and indexed, and leave other code that keeps the invariant enough time to do so. `repair` must
    be safe to repeat, use the code that makes such changes elsewhere, and send messages or requests
    only on commit.
    """

    name: ClassVar[str] = ""
    every: ClassVar[float | None] = 15
    """Seconds between two checks by the sweeper; None: only `manage.py fsck` checks it."""
    limit: ClassVar[int] = 1000
    """The maximum number of violations of one check."""
    advice: ClassVar[str] = ""
    """What the repair does and what to investigate, or what to do if there is no repair."""
    in_batches: ClassVar[bool] = False
    """`find` and `confirm` read in many short transactions of their own; only without `every`."""

    found_by: ClassVar[Callable[[int], Iterable[Any]] | None] = None
    """A function that takes `limit` and returns the violations."""
    repaired_by: ClassVar[Callable[[Sequence[Any]], int] | None] = None
    """A function that repairs violations and returns how many it repaired."""

    def find(self) -> Iterable[Any]:
        """Return the violations (ids, names or tuples), at most `limit`."""
        found_by = type(self).found_by
        if found_by is None:
            raise NotImplementedError
        return found_by(self.limit)

    def confirm(self, violations: Sequence[Any]) -> list[Any]:
        """Return the given violations that still exist: the second check of `manage.py fsck`."""
        current = set(self.find())
        return [violation for violation in violations if violation in current]

    def repair(self, violations: Sequence[Any]) -> int:
        """Repair these violations; return how many were repaired."""
        repaired_by = type(self).repaired_by
        if repaired_by is None:
            raise NotImplementedError
        return repaired_by(violations)

    @property
    def repairs(self) -> bool:
        return type(self).repaired_by is not None or type(self).repair is not Invariant.repair


def all_invariants() -> list[Invariant]:
    """Return an instance of each invariant of all installed apps, by name."""
    classes = [cls for cls in subclasses(Invariant) if cls.__dict__.get("name")]
    return [cls() for cls in sorted(classes, key=lambda cls: cls.name)]
