"""A lock per user, so that two requests cannot exceed a limit per user together."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.db import transaction


@contextmanager
def locked(user: User) -> Iterator[None]:
    """Lock the user's row until the block's transaction ends.

    Other transactions can still insert rows that refer to the user.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list("pk").first()
        yield
