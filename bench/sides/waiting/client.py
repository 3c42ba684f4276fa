"""One request to the server, sync or async, over connections of the process that stay.

All sides use it, so what differs between them is the queue, not the HTTP library.
"""

import asyncio
import os
import socket

END = b"\r\n\r\n"
_idle: list[socket.socket] = []
_idle_streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []


def address() -> tuple[str, int]:
    """Of the server."""
    return "127.0.0.1", int(os.environ["BENCH_DESTINATION"])


def _request(id: object) -> bytes:
    return f"GET /call/{id} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()


def call(id: object) -> None:
    """Ask and wait, in a thread, a greenlet or a process."""
    try:
        connection = _idle.pop()
    except IndexError:
        connection = socket.create_connection(address(), 30)
    connection.sendall(_request(id))
    reply = b""
    while not reply.endswith(END):
        received = connection.recv(4096)
        if not received:
            raise ConnectionError("the server went away")
        reply += received
    _idle.append(connection)


async def acall(id: object) -> None:
    """Ask and wait, in the event loop."""
    streams = _idle_streams.pop() if _idle_streams else await asyncio.open_connection(*address())
    reader, writer = streams
    try:
        writer.write(_request(id))
        await reader.readuntil(END)
    except BaseException:
        writer.close()
        raise
    _idle_streams.append(streams)
