"""Asks an address again and again, in a process of its own; prints what it saw when it is stopped.

`python -m tests.siege.prober URL`: a line of JSON for each request, with its seconds and status.
With a token: `… URL TOKEN BYTES` sends a body; if it is large, only its head, and the status is
that of the server's first answer: 100 if the body may come.
"""

import http.client
import json
import socket
import sys
import time
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.05
PAUSE_OF_USERS = 0.25
"""So that a user stays within the budgets."""
PATIENCE_SECONDS = 60.0
SENT_WHOLE = 1_000_000


def main(url: str, token: str = "", length: str = "0") -> None:
    parts = urlsplit(url)
    while True:
        began = time.monotonic()
        try:
            if int(length) > SENT_WHOLE:
                status = _claim(parts.netloc, parts.path, token, int(length))
            else:
                status = _ask(parts.netloc, parts.path, token, b"x" * int(length))
        except (OSError, http.client.HTTPException) as error:
            status = type(error).__name__
        print(json.dumps([time.monotonic() - began, status]), flush=True)
        time.sleep(PAUSE_OF_USERS if token else PAUSE_SECONDS)


def _ask(host: str, path: str, token: str, body: bytes) -> str:
    # A connection of its own for each, as a load balancer's check has.
    connection = http.client.HTTPConnection(host, timeout=PATIENCE_SECONDS)
    try:
        if token:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request("POST", path, body, headers)
        else:
            connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return str(answer.status)
    finally:
        connection.close()


def _claim(host: str, path: str, token: str, length: int) -> str:
    name, _, port = host.partition(":")
    lines = [
        f"POST {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}",
        f"Content-Length: {length}", "Expect: 100-continue", "", "",
    ]  # fmt: skip
    with socket.create_connection((name, int(port)), PATIENCE_SECONDS) as peer:
        peer.sendall("\r\n".join(lines).encode())
        answer = peer.recv(1000)
    return answer.split()[1].decode() if answer else "closed"


if __name__ == "__main__":
    main(*sys.argv[1:])
