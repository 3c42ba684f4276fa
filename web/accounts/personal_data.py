"""The base class of personal data that apps store and can delete, as declared in
`personal_data.py`."""

from collections.abc import Mapping
from typing import ClassVar

from django.contrib.auth.models import User
from django.db.models import Model

from tailrace.environment.discovery import Described, import_modules, subclasses

BATCH = 500
"""Maximum number of rows that one transaction deletes."""


class PersonalData(Described):
    """One kind of personal data. The docstring of a subclass describes the data to the user."""

    rows: ClassVar[Mapping[type[Model], str]] = {}
    """Models whose rows are deleted, each with the lookup of the user: `{Feed: "user"}`."""

    def delete(self, user: User) -> int:
        """Delete a batch in one short transaction; return the number of rows, 0 if none is left. It
        is called until it returns 0, and again after a crash. Data outside of the database is
        deleted by a job that is enqueued in the transaction."""
        for model, lookup in self.rows.items():
            rows = model._default_manager.filter(**{lookup: user})
            if ids := list(rows.values_list("pk", flat=True)[:BATCH]):
                return model._default_manager.filter(pk__in=ids).delete()[0]
        return 0


def all_personal_data() -> list[PersonalData]:
    import_modules("personal_data")
    return [cls() for cls in subclasses(PersonalData)]
