"""A cause, and the checks that find causes: a module in `causes/` adds one."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from django.contrib.auth.models import User

from tailrace.jobs.inspection.verdict.facts import Facts


@dataclass(frozen=True, slots=True)
class Link:
    """Where a cause is looked at: a view's name and its arguments, and who may go there."""

    label: str
    view: str
    args: tuple[str | int, ...] = ()
    query: str = ""
    permission: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that keeps jobs from getting done."""

    words: str
    """One sentence with its figures, for all staff."""
    subject: str = ""
    """The queue, schedule or destination that it is about, by which its check mends it."""
    since: datetime | None = None
    advice: str = ""
    """What to do where no button can."""
    command: str = ""
    """A command of the shell that mends it."""
    link: Link | None = None
    private: str = ""
    """A name or an error that only those may read who have the check's permission."""
    code: str = ""
    """Which check found it, e.g. `queue_paused`; set by the verdict."""


class Check:
    """Finds the causes of one kind, from bounded reads, and mends them where a button can."""

    code: ClassVar[str] = ""
    rank: ClassVar[int] = 50
    """Causes of a lower rank come first."""
    permission: ClassVar[str] = ""
    """Who may read what is private in its causes; empty: all staff."""
    button: ClassVar[str] = ""
    """The label of the button; empty: there is none."""
    button_permission: ClassVar[str] = ""

    def causes(self, facts: Facts) -> list[Cause]:
        """Return the causes of this kind that there are now."""
        raise NotImplementedError

    def mend(self, user: User, subject: str) -> str:
        """Do what the button says, with an entry in the log; return what was done, in words."""
        raise NotImplementedError
