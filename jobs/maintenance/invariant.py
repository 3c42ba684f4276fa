"""Invariants: what should be true of the stored state, how to find violations, how to repair them.

Write a subclass in `invariants.py` of any installed app. The sweeper checks it at its interval, and
`manage.py fsck` at any time.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tailrace.events.discovery import Described, subclasses


class Invariant(Described):
    """Something that should be true; the docstring describes it in reports.

    `find` and `repair` run in one transaction with time limits, one sweep per invariant at a time.
    `find` is bounded and indexed. `repair` is safe to repeat, uses the code that makes such changes
    everywhere else, and talks to others than the database only on commit. An invariant of what
    other code keeps true finds only what is older than that code needs.
    """

    name: ClassVar[str] = ""
    every: ClassVar[float | None] = 15
    """Seconds between two checks of the sweeper; None: only `manage.py fsck` checks it."""
    limit: ClassVar[int] = 1000
    """Rows per check."""
    advice: ClassVar[str] = ""
    """What the repair does and what to look into, or what to do where there is no repair."""
    in_batches: ClassVar[bool] = False
    """`find` and `confirm` read in many short transactions of their own; only without `every`."""

    def find(self) -> Iterable[Any]:
        """Return the violations (ids, names or tuples of them), at most `limit` of them."""
        raise NotImplementedError

    def confirm(self, violations: Sequence[Any]) -> list[Any]:
        """Return those that are still violations: the second look of `manage.py fsck`."""
        current = set(self.find())
        return [violation for violation in violations if violation in current]

    def repair(self, violations: Sequence[Any]) -> int:
        """Repair these violations; return how many were repaired."""
        raise NotImplementedError

    @property
    def repairs(self) -> bool:
        """Whether there is a repair."""
        return type(self).repair is not Invariant.repair


def all_invariants() -> list[Invariant]:
    """Return one of each invariant of all installed apps, by name."""
    classes = [cls for cls in subclasses(Invariant) if cls.__dict__.get("name")]
    return [cls() for cls in sorted(classes, key=lambda cls: cls.name)]
