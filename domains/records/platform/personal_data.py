"""The personal data in records."""

from django.contrib.auth.models import User

from tailrace.domains.records.depositions.deletion import delete_some_of
from tailrace.web.accounts.personal_data import PersonalData


class Depositions(PersonalData):
    """Your depositions with their files, and the records published from them."""

    def delete(self, user: User) -> int:
        return delete_some_of(user.pk)
