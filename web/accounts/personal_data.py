"""What apps store of a person, and how they delete it.

Write a subclass in `personal_data.py` of any installed app.
"""

from collections.abc import Mapping
from typing import ClassVar

from django.contrib.auth.models import User
from django.db.models import Model

from tailrace.events.discovery import Described, import_modules, subclasses

BATCH = 500
"""Rows that are deleted in one transaction."""


class PersonalData(Described):
    """Something that is stored of a person; the docstring says what, for the person to read."""

    rows: ClassVar[Mapping[type[Model], str]] = {}
    """Tables whose rows are deleted, each with the lookup of the user: `{Feed: "user"}`."""

    def delete(self, user: User) -> int:
        """Delete some of it, in one short transaction; return how much, 0 if nothing is left.

        It is called until it returns 0, and again after a crash. What is not in the database is
        deleted by a job that is enqueued in the transaction.
        """
        for model, lookup in self.rows.items():
            rows = model._default_manager.filter(**{lookup: user})
            if ids := list(rows.values_list("pk", flat=True)[:BATCH]):
                return model._default_manager.filter(pk__in=ids).delete()[0]
        return 0


def all_personal_data() -> list[PersonalData]:
    """Return one of each of all installed apps."""
    import_modules("personal_data")
    return [cls() for cls in subclasses(PersonalData)]
