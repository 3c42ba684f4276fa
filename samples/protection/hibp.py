"""A server with the protocols of Have I Been Pwned v3 and of Pwned Passwords.

https://haveibeenpwned.com/API/v3
"""

import hashlib
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tailrace.net.sample_server import Request, Response

KEY = "00112233445566778899aabbccddeeff"
JSON = {"Content-Type": "application/json; charset=utf-8"}


def make_breach(name: str, *classes: str, **fields: Any) -> dict[str, Any]:
    """Return a breach as the service describes it."""
    return {
        "Name": name,
        "Title": name,
        "Domain": f"{name.lower()}.example",
        "BreachDate": "2024-10-04",
        "AddedDate": "2025-01-02T03:04:05Z",
        "ModifiedDate": "2025-01-02T03:04:05Z",
        "PwnCount": 152445165,
        "Description": f"In October, <a href='https://{name}.example'>{name}</a> lost &amp; sold.",
        "DataClasses": list(classes or ["Email addresses", "Passwords"]),
        "IsVerified": True,
        "IsFabricated": False,
        "IsSensitive": False,
        "IsRetired": False,
        "IsSpamList": False,
        "IsMalware": False,
        "IsStealerLog": False,
        "LogoPath": f"https://logos.haveibeenpwned.com/{name}.png",
    } | fields


@dataclass
class HibpService:
    """The data of the service, the received requests, and the faults."""

    url: str = ""
    key: str = KEY
    breaches: dict[str, dict[str, Any]] = field(default_factory=dict)
    accounts: dict[str, list[str]] = field(default_factory=dict)
    """The names of the breaches of each account. `*` stands for every account."""
    pastes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    passwords: dict[str, int] = field(default_factory=dict)
    """How often each password occurs in leaks."""
    requests: list[Request] = field(default_factory=list)
    refused: int = 0
    """Number of requests that were answered with 429."""
    limit: int | None = None
    """Number of requests that are answered in each `window`; further requests get 429."""
    window: float = 1.0
    retry_after: int = 2
    delay: float = 0.0
    """Seconds before each answer."""
    faults: dict[str, Response] = field(default_factory=dict)
    """Responses that replace the normal ones, by the beginning of the path; `/` for all paths."""
    before: Callable[[Request], object] = lambda request: None
    """Called before each answer."""
    _times: deque[float] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, breach: dict[str, Any], *accounts: str) -> None:
        """Add a breach of these accounts."""
        self.breaches[breach["Name"]] = breach
        for account in accounts:
            self.accounts.setdefault(account, []).append(breach["Name"])

    def asked(self, part: str = "") -> list[str]:
        """Return the values that were looked up, of requests whose path begins with `part`."""
        paths = [urlsplit(request.path).path for request in self.requests]
        return [unquote(path.rpartition("/")[2]) for path in paths if path.startswith("/" + part)]

    def respond(self, request: Request) -> Response:
        with self._lock:
            self.requests.append(request)
        self.before(request)
        if self.delay:
            time.sleep(self.delay)
        for beginning, fault in list(self.faults.items()):
            if request.path.startswith(beginning):
                return fault
        parts = urlsplit(request.path)
        endpoint, _slash, name = parts.path[1:].partition("/")
        answer: Response = getattr(self, f"_{endpoint}", self._unknown)(request, unquote(name))
        return answer

    def _unknown(self, request: Request, name: str) -> Response:
        return error(404, "Not found")

    def _breachedaccount(self, request: Request, account: str) -> Response:
        if refusal := self._refusal(request, account):
            return refusal
        names = self.accounts.get(account.lower(), []) + self.accounts.get("*", [])
        if not names:
            return Response(404)
        rows = [self.breaches[name] for name in names]
        if parse_qs(urlsplit(request.path).query).get("truncateResponse") != ["false"]:
            return document([{"Name": row["Name"]} for row in rows])
        return document(rows)

    def _pasteaccount(self, request: Request, account: str) -> Response:
        if refusal := self._refusal(request, account):
            return refusal
        rows = self.pastes.get(account.lower())
        return document(rows) if rows else Response(404)

    def _breaches(self, request: Request, name: str) -> Response:
        return self._without_key(request) or document(list(self.breaches.values()))

    def _latestbreach(self, request: Request, name: str) -> Response:
        newest = max(self.breaches.values(), key=lambda row: row["AddedDate"], default=None)
        return self._without_key(request) or (document(newest) if newest else Response(404))

    def _range(self, request: Request, prefix: str) -> Response:
        if not re.fullmatch(r"[0-9A-Fa-f]{5}", prefix):
            return Response(400, b"The hash prefix was not in a valid format")
        hashes = {_sha1(password): count for password, count in self.passwords.items()}
        own = [f"{key[5:]}:{count}" for key, count in hashes.items() if key[:5] == prefix.upper()]
        others = [f"{_sha1(f'{prefix} {number}')[5:]}:{number + 1}" for number in range(3)]
        padding = 20 if request.headers.get("add-padding") == "true" else 0
        padding_lines = [f"{_sha1(f'padding {number}')[5:]}:0" for number in range(padding)]
        lines = "\r\n".join(sorted(own + others + padding_lines))
        return Response(200, lines.encode(), {"Content-Type": "text/plain"})

    def _refusal(self, request: Request, account: str) -> Response | None:
        """Return the error for a request about an account, or None if it is answered."""
        if refusal := self._without_key(request):
            return refusal
        if request.headers.get("hibp-api-key") != self.key:
            return error(401, "Access denied due to invalid hibp-api-key.")
        if self._over_limit():
            message = f"Rate limit is exceeded. Try again in {self.retry_after} seconds."
            return error(429, message, **{"retry-after": str(self.retry_after)})
        return error(400, "The account does not comply.") if not account.strip() else None

    def _without_key(self, request: Request) -> Response | None:
        if not request.headers.get("user-agent"):
            return error(403, "A user agent is required.")
        return None

    def _over_limit(self) -> bool:
        with self._lock:
            now = time.monotonic()
            while self._times and self._times[0] <= now - self.window:
                self._times.popleft()
            if self.limit is None or len(self._times) < self.limit:
                self._times.append(now)
                return False
            self.refused += 1
            return True


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest().upper()


def document(value: Any) -> Response:
    return Response(200, json.dumps(value).encode(), JSON)


def error(status: int, message: str, **headers: str) -> Response:
    body = {"statusCode": status, "message": message}
    return Response(status, json.dumps(body).encode(), JSON | headers)
