"""The HTTP clients of a process: two for each event loop, so that connections are used again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from tailrace.net.http_client import Client

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, Client]] = WeakKeyDictionary()
_own: ContextVar[dict[bool, Client] | None] = ContextVar("own_clients", default=None)


def shared_client(*, public_only: bool) -> Client:
    """Return the client of the running event loop; `public_only` is as for `Client`."""
    clients = _own.get()
    if clients is None:
        clients = _clients.setdefault(asyncio.get_running_loop(), {})
    if public_only not in clients:
        clients[public_only] = Client(public_only=public_only, max_connections=None)
    return clients[public_only]


@asynccontextmanager
async def own_clients() -> AsyncIterator[None]:
    """Let `shared_client` return clients of this block alone, which are closed when it ends: for a
    loop that ends soon, such as that of a request."""
    clients: dict[bool, Client] = {}
    token = _own.set(clients)
    try:
        yield
    finally:
        _own.reset(token)
        for client in clients.values():
            await client.__aexit__()
