"""What records store of a person."""

from django.contrib.auth.models import User

from tailrace.domains.records.depositions.deletion import delete_some_of
from tailrace.web.accounts.personal_data import PersonalData


class Depositions(PersonalData):
    """Your depositions with their files, and the records that were made of them."""

    def delete(self, user: User) -> int:
        return delete_some_of(user.pk)
