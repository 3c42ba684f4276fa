"""The HTTP clients of a process: two for each event loop, so that connections are used again."""

import asyncio
from weakref import WeakKeyDictionary

from net.http_client import Client

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, Client]] = WeakKeyDictionary()


def shared_client(*, public_only: bool) -> Client:
    """Return the client of the running event loop; `public_only` is as for `Client`."""
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    if public_only not in clients:
        clients[public_only] = Client(public_only=public_only, max_connections=None)
    return clients[public_only]
