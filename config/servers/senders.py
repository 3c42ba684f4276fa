"""Threads of a web process that find the user of a request before its body is received."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import structlog
from django.db import DatabaseError

from tailrace.config.servers.connection import TOO_MANY, UNAVAILABLE
from tailrace.db.limits import reason
from tailrace.web.accounts.budget import BudgetExceeded
from tailrace.web.accounts.sender import Credentials, user_of

log = structlog.get_logger(__name__)

THREADS = 2
MOST, MOST_OF_NETWORK = 128, 64
"""Maximum number of credentials that are being looked up, in total and of one network."""

Then = Callable[[int | None, str], None]
"""Takes the id of the user (None: a stranger), and a status if the request is refused."""


class Senders(ThreadPoolExecutor):
    """Threads that look up senders. `defer` lets the event loop call a function."""

    def __init__(self, defer: Callable[..., None]) -> None:
        super().__init__(THREADS, "sender")
        self._defer = defer
        self._networks: Counter[str] = Counter()
        self._waiting: dict[Credentials, list[Then]] = {}

    def look_up(self, authorization: str, cookies: str, network: str, then: Then) -> None:
        """Look up the sender of a request with these two headers. The event loop, which calls this,
        calls `then` with the result: at once if there are no credentials, or too many others.
        Credentials of several requests at once are looked up once."""
        credentials = Credentials.of(authorization, cookies)
        if credentials is None:
            return then(None, "")
        if credentials in self._waiting:
            self._waiting[credentials].append(then)
            return None
        if len(self._waiting) >= MOST or self._networks[network] >= MOST_OF_NETWORK:
            return then(None, UNAVAILABLE)
        self._networks[network] += 1
        self._waiting[credentials] = [then]
        future = self.submit(user_of, credentials, network)
        future.add_done_callback(lambda done: self._defer(self._finish, credentials, network, done))
        return None

    def _finish(self, credentials: Credentials, network: str, done: "Future[int | None]") -> None:
        self._networks -= Counter([network])
        result = _result(done)
        for then in self._waiting.pop(credentials):
            then(*result)


def _result(done: "Future[int | None]") -> tuple[int | None, str]:
    try:
        return done.result(), ""
    except BudgetExceeded:
        return None, TOO_MANY
    except DatabaseError as error:
        log.warning("web.sender_not_read", error=reason(error))
    except Exception:
        log.exception("web.sender_not_read")
    return None, UNAVAILABLE
