"""The clients: each publishes event after event, and repeats each until it is acknowledged."""

import http.client
import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.chaos.deployment import TAILRACE, Deployment

CLIENTS = 4
RATE = 40.0
"""Events per second, of all clients."""
ROLLED_BACK = 20
"""Of so many transactions one is rolled back by its caller."""
NOTIFICATIONS = 5.0
"""Per second, in the backend's log."""
TIMEOUT = 10
LAST_ANSWER = 60.0
"""Seconds for which a client repeats its last event when the load has ended: until it is answered,
nobody knows whether the event is recorded."""


@dataclass
class Load:
    """What the clients have published in one cell."""

    deployment: Deployment
    name: str
    rate: float = RATE
    acknowledged: dict[str, tuple[int, float]] = field(default_factory=dict)
    """id → number, time of the answer (CLOCK_MONOTONIC)."""
    taken_back: set[str] = field(default_factory=set)
    unanswered: list[str] = field(default_factory=list)
    """The events whose clients have given up."""
    tries_again: int = 0
    sent: int = 0
    """Notifications in the backend's log."""

    def __post_init__(self) -> None:
        self.ends = threading.Event()
        self.gives_up_at = math.inf

    def end(self) -> None:
        """Let each client get the answer to the event that it is sending, and return."""
        self.gives_up_at = time.monotonic() + LAST_ANSWER
        self.ends.set()

    def client(self, client: int) -> None:
        """Publish at an even pace; what could not be sent in time is not made up for."""
        began, pause = time.monotonic(), CLIENTS / self.rate
        number = 0
        while not self.ends.wait(max(began + number * pause - time.monotonic(), 0)):
            self._publish(client, number)
            number = max(number + 1, int((time.monotonic() - began) / pause))

    def _publish(self, client: int, number: int) -> None:
        id = f"{self.name}:{client}:{number}"
        back = number % ROLLED_BACK == ROLLED_BACK - 1
        body = {"id": id, "client": f"client{client}", "number": number, "rollback": back}
        while time.monotonic() < self.gives_up_at:
            status = _post(
                self.deployment.port, f"/chaos/publish/{self.deployment.side}", json.dumps(body)
            )
            if status == 200:
                self.acknowledged[id] = (number, time.monotonic())
                return
            if status == 409:
                self.taken_back.add(id)
                return
            self.tries_again += 1
            time.sleep(0.2)
        self.unanswered.append(id)

    def enqueue(self, handler: str, count: int) -> None:
        """Let the web server enqueue so many jobs of this handler."""
        body = json.dumps({"handler": handler, "count": count})
        status = _post(self.deployment.port, "/chaos/enqueue", body)
        if status != 200:
            raise ConnectionError(f"{count} jobs of {handler} are not enqueued: {status}")

    def enqueue_flow(self, key: str, parts: int, seconds: float = LAST_ANSWER) -> bool:
        """Let the web server enqueue a flow, once; repeat it until it is acknowledged. Return
        whether it was."""
        until = time.monotonic() + seconds
        body = json.dumps({"key": key, "parts": parts})
        while _post(self.deployment.port, "/chaos/flow", body) != 200:
            if time.monotonic() > until:
                return False
            time.sleep(0.2)
        return True

    def notifications(self) -> None:
        """Let things happen in the build service."""
        if self.deployment.side != TAILRACE:
            return
        while not self.ends.wait(1 / NOTIFICATIONS):
            self.notify(1)

    def notify(self, count: int) -> None:
        """Append so many notifications to the backend's log."""
        for _ in range(count):
            self.sent = self.deployment.backend.notify(*_notification(self.deployment))


@contextmanager
def load(deployment: Deployment, name: str, rate: float = RATE) -> Iterator[Load]:
    """The clients at work, until the block is left; returns when each has its last answer."""
    running = Load(deployment, name, rate)
    threads = [threading.Thread(target=running.client, args=[n]) for n in range(CLIENTS)]
    threads.append(threading.Thread(target=running.notifications))
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        running.end()
        for thread in threads:
            thread.join()


def _post(port: int, path: str, body: str) -> int | None:
    """The status; None if there was no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return None
    else:
        return answer.status
    finally:
        connection.close()


def _notification(deployment: Deployment) -> tuple[str, dict[str, str]]:
    number = deployment.backend.log.end
    place = {"project": f"home:user{number % 50}", "package": f"package{number % 7}"}
    user = f"user{number % 50}"
    type, keys = deployment.random.choice(
        [
            ("SRCSRV_COMMIT", {"user": user, "rev": str(number), "comment": f"change {number}"}),
            ("BUILD_SUCCESS", {"repository": "standard", "arch": "x86_64", "rev": "1"}),
            ("BUILD_FAIL", {"repository": "standard", "arch": "x86_64", "rev": "1"}),
            ("SRCSRV_VERSION_CHANGE", {"user": user, "newversion": str(number)}),
            ("NO_SUCH_EVENT", {"number": str(number)}),
        ]
    )
    return type, keys | place
