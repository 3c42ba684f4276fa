"""Personal data in timelines."""

from django.contrib.auth.models import User

from tailrace.domains.timeline.imports.deletion import delete_some_of
from tailrace.web.accounts.personal_data import PersonalData


class Timeline(PersonalData):
    """Where you were and when, your devices, and the files that you imported."""

    def delete(self, user: User) -> int:
        return delete_some_of(user.pk)
