"""Asks an address again and again, in a process of its own; prints what it saw when it is stopped.

`python -m tests.siege.prober URL`: a line of JSON for each request, with its seconds and status.
"""

import http.client
import json
import sys
import time
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.05
PATIENCE_SECONDS = 60.0


def main(url: str) -> None:
    parts = urlsplit(url)
    while True:
        began = time.monotonic()
        # A connection of its own for each, as a load balancer's check has.
        connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", parts.path)
            answer = connection.getresponse()
            answer.read()
            status = str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            status = type(error).__name__
        finally:
            connection.close()
        print(json.dumps([time.monotonic() - began, status]), flush=True)
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1])
