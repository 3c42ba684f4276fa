"""The HTTP clients of a process: up to two for each event loop, which reuse connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from tailrace.net.http_client import Client

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, Client]] = WeakKeyDictionary()
_own: ContextVar[dict[bool, Client] | None] = ContextVar("own_clients", default=None)


def shared_client(*, public_only: bool) -> Client:
    """Return the client of the running event loop; for `public_only` see `Client`."""
    clients = _own.get()
    if clients is None:
        clients = _clients.setdefault(asyncio.get_running_loop(), {})
    if public_only not in clients:
        clients[public_only] = Client(public_only=public_only)
    return clients[public_only]


@asynccontextmanager
async def own_clients() -> AsyncIterator[None]:
    """Make `shared_client` return new clients within the block, and close them at its end.

    For event loops that end soon, such as the loop of one request.
    """
    clients: dict[bool, Client] = {}
    token = _own.set(clients)
    try:
        yield
    finally:
        _own.reset(token)
        for client in clients.values():
            await client.__aexit__()
