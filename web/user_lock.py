"""A lock per user: what has a limit per user is counted and added by one request at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.db import transaction


@contextmanager
def locked(user: User) -> Iterator[None]:
    """Hold the lock of the user's row until the block's transaction ends.

    It keeps nobody from adding rows that refer to the user.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk").first()
        yield
