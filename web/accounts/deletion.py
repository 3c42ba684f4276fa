"""Delete an account with all of its personal data.

    request_deletion: the account is closed ──► job ──► delete_account: each app's PersonalData,
                                                        in short transactions ──► the user's row

Access ends at once: an inactive user cannot sign in, and sessions, tokens and feeds are refused.
An interrupted job runs again and deletes the remaining data.
"""

from collections.abc import Callable

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.jobs.enqueue import enqueue
from tailrace.web.accounts.personal_data import all_personal_data

HANDLER = "web.delete_account"


class DeletionRefused(Exception):
    """The account cannot be deleted; the message says why."""


def request_deletion(user: User) -> None:
    """Close the account and enqueue the job that deletes it with its data.

    Raises DeletionRefused for the only active superuser.
    """
    with transaction.atomic():
        # Lock all superusers, so that the last two cannot be deleted at the same time.
        superusers = User.objects.select_for_update().filter(is_superuser=True, is_active=True)
        if {row.pk for row in superusers} == {user.pk}:
            raise DeletionRefused(
                f"{user} is the only active superuser: make another user a superuser first"
            )
        user.is_active = user.is_staff = user.is_superuser = False
        user.set_unusable_password()
        user.save(update_fields=["is_active", "is_staff", "is_superuser", "password"])
        enqueue(HANDLER, {"user": user.pk}, unique_key=str(user.pk))


def delete_account(user_id: int, interrupted: Callable[[], bool] = lambda: False) -> bool:
    """Delete a closed account; return False if `interrupted` returned true before the end. An
    active account is not deleted."""
    while user := User.objects.filter(pk=user_id, is_active=False).first():
        for data in all_personal_data():
            while data.delete(user):
                if interrupted():
                    return False
        _delete_row(user)
    return True


def _delete_row(user: User) -> None:
    """Delete the user's row, unless new personal data was stored since the last look."""
    with transaction.atomic():
        # The lock keeps other transactions from inserting rows that refer to the user.
        closed = User.objects.select_for_update().filter(pk=user.pk, is_active=False)
        if closed.first() and not any(data.delete(user) for data in all_personal_data()):
            closed.delete()
