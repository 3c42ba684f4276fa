"""A WSGI application that answers with what it has read; it needs no Django."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

released = threading.Event()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer with path, length and digest of the body as JSON. /unread answers without reading, a
    path with `held` waits between /healthz/hold and /release or /healthz/release."""
    path = environ["PATH_INFO"]
    if "held" in path:
        released.wait()
    elif path == "/healthz/hold":
        released.clear()
    elif path.endswith("/release"):
        released.set()
    body = environ["wsgi.input"].read() if path != "/unread" else b""
    answer = json.dumps(
        {
            "path": path,
            "scheme": environ["wsgi.url_scheme"],
            "length": len(body),
            "digest": hashlib.sha256(body).hexdigest(),
        }
    ).encode()
    head = [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))]
    start_response("200 OK", head)
    return [answer]
