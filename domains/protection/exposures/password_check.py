"""Look a password that somebody types up in leaks, while they wait. Nothing of it is stored."""

import asyncio
import contextvars
import threading

from asgiref.sync import async_to_sync, sync_to_async
from django.db import connections
from django.views.decorators.debug import sensitive_variables

from tailrace.domains.protection.providers.ask import SourceAway, SourceBusy, SourceRefuses
from tailrace.domains.protection.providers.pwned_passwords import times_pwned
from tailrace.net.shared_client import own_clients

COST = 5.0
"""Ordinary requests that a check counts as."""
SECONDS = 8.0
"""For the whole check."""
AT_ONCE = 2
"""Checks of one process: each holds one of its threads."""
MAX_LENGTH = 1000
_places = threading.BoundedSemaphore(AT_ONCE)


class CheckFailed(Exception):
    """The password was not looked up: try again in a moment."""


@sensitive_variables()
def check_password(password: str) -> int:
    """Return how often the password stands in leaks. Raises CheckFailed."""
    if not _places.acquire(blocking=False):
        raise CheckFailed("other passwords are being checked")
    try:
        return async_to_sync(_ask)(password)
    except (SourceAway, SourceBusy, SourceRefuses, TimeoutError):
        raise CheckFailed("the list of leaked passwords cannot be asked now") from None
    finally:
        _places.release()


@sensitive_variables()
async def _ask(password: str) -> int:
    try:
        async with asyncio.timeout(SECONDS), own_clients():
            return await times_pwned(password)
    finally:
        # What several callers share (`Together`) works in the context of none of them, and so in
        # asgiref's thread, whose connection no end of a request closes.
        close = sync_to_async(connections.close_all)()
        await asyncio.get_running_loop().create_task(close, context=contextvars.Context())
