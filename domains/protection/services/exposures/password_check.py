"""Look up a password in leaks while the user waits. Nothing about the password is stored."""

import asyncio
import contextvars
import threading

from asgiref.sync import async_to_sync, sync_to_async
from django.db import connections
from django.views.decorators.debug import sensitive_variables

from tailrace.domains.protection.services.providers.pwned_passwords import times_pwned
from tailrace.jobs.destinations.request_errors import RequestError
from tailrace.net.shared_client import own_clients

COST = 5.0
"""The cost of a check in ordinary requests."""
SECONDS = 8.0
"""Time limit for the whole check."""
AT_ONCE = 2
"""Concurrent checks in one process. Each occupies a thread."""
MAX_LENGTH = 1000
_slots = threading.BoundedSemaphore(AT_ONCE)


class CheckFailed(Exception):
    """The password was not looked up; the user can try again."""


@sensitive_variables()
def check_password(password: str) -> int:
    """Return how often the password occurs in leaks. Raises CheckFailed."""
    if not _slots.acquire(blocking=False):
        raise CheckFailed("other passwords are being checked")
    try:
        return async_to_sync(_count_leaks)(password)
    except (RequestError, TimeoutError):
        raise CheckFailed("the list of leaked passwords is not available now") from None
    finally:
        _slots.release()


@sensitive_variables()
async def _count_leaks(password: str) -> int:
    try:
        async with asyncio.timeout(SECONDS), own_clients():
            return await times_pwned(password)
    finally:
        # `Together` runs outside of the context of its callers, and so in asgiref's own thread. The
        # end of a request does not close that thread's connection.
        close = sync_to_async(connections.close_all)()
        await asyncio.get_running_loop().create_task(close, context=contextvars.Context())
