"""A WSGI application that answers with what it has read. The web server uses Django's apps."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

import django

django.setup()
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
    body, received = b"", True
    if path != "/unread":
        try:
            body = environ["wsgi.input"].read()
        except OSError:
            received = False
    answer = json.dumps(
        {
            "path": path,
            "scheme": environ["wsgi.url_scheme"],
            "received": received,
            "length": len(body),
            "digest": hashlib.sha256(body).hexdigest(),
        }
    ).encode()
    head = [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))]
    start_response("200 OK", head)
    return [answer]
