"""Each attack takes the target and returns what was answered, counted. None lasts half a minute."""

import contextlib
import gzip
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from tests.security.pictures import progressive_jpeg
from tests.siege.attacker import Attacker

PATIENCE_SECONDS = 60.0
Answers = Counter[str]
T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """The platform under siege, and who attacks it. The endpoints of each: one at a server that
    answers nothing, one at a server that sends interim answers without end."""

    url: str
    attackers: list[Attacker]
    hold_seconds: float
    """How long half-open connections are held."""

    def connect(self) -> socket.socket:
        parts = urlsplit(self.url)
        return socket.create_connection((parts.hostname, parts.port), PATIENCE_SECONDS)

    def call(
        self,
        method: str,
        path: str,
        token: str = "",
        headers: Mapping[str, str] = MappingProxyType({}),
        **content: Any,
    ) -> str:
        """Return the status of an answer, or what went wrong."""
        all_headers = {"Authorization": f"Bearer {token}", **headers} if token else headers
        with _client() as client, named_errors() as error:
            answer = client.request(method, self.url + path, headers=all_headers, **content)
            return str(answer.status_code)
        return error[0]


def _client() -> httpx.Client:
    return httpx.Client(timeout=PATIENCE_SECONDS, trust_env=False, verify=False)  # noqa: S501


@contextlib.contextmanager
def named_errors() -> Iterator[list[str]]:
    """Yield a list that gets the name of the network error that ended the block, if one did."""
    names: list[str] = []
    try:
        yield names
    except (httpx.HTTPError, OSError) as error:
        names.append(type(error).__name__)


def at_once(call: Callable[[T], str], inputs: Iterable[T], threads: int = 64) -> Answers:
    """Call it with each of the inputs, many at once; return the answers."""
    with ThreadPoolExecutor(threads) as pool:
        return Counter(pool.map(call, inputs))


# --- connections ---

MB = 1_000_000
HEAD = b"POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n"


def half_open_connections(target: Target) -> Answers:
    """Five hundred connections that send half a request's head and no more."""
    return _held(target, [HEAD] * 500)


def slow_bodies(target: Target) -> Answers:
    """Five hundred requests whose bodies come a byte a second."""
    return _held(target, [HEAD + b"\r\n"] * 500, drip=b"x")


def silent_connections(target: Target) -> Answers:
    """A thousand connections that send nothing."""
    return _held(target, [b""] * 1000)


def silent_claims(target: Target) -> Answers:
    """Uploads of 20 MB, 1 MB and 100 KB of which a byte comes, of strangers and of one user: 28 of
    each."""
    token = target.attackers[0].tokens[0]
    claims = [
        claim
        for length in (20 * MB, MB, MB // 10)
        for claim in (_claim("/accounts/login/", length), _claim("/api/photos", length, token))
        for _ in range(28)
    ]
    return _held(target, claims)


def silent_imports(target: Target) -> Answers:
    """The same with imports of 4.5 GB: as many as there are places, and more."""
    token = target.attackers[0].tokens[0]
    claims = [_claim("/api/imports", 4500 * MB), _claim("/api/imports", 4500 * MB, token)]
    return _held(target, claims * 4)


def _claim(path: str, length: int, token: str = "") -> bytes:
    """A head that announces a body, and the body's first byte."""
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{authorization}"
        f"Content-Length: {length}\r\n\r\nx"
    ).encode()


def _held(target: Target, heads: list[bytes], drip: bytes = b"") -> Answers:
    answers: Answers = Counter()
    peers: list[socket.socket] = []
    for head in heads:
        try:
            peer = target.connect()
            peer.sendall(head)
        except OSError as error:
            answers[type(error).__name__] += 1
        else:
            peer.setblocking(False)
            peers.append(peer)
    until = time.monotonic() + target.hold_seconds
    while time.monotonic() < until:
        time.sleep(1)
        for peer in list(peers):
            if word := _state(peer, drip):
                answers[word] += 1
                peers.remove(peer)
                peer.close()
    answers["still open"] += len(peers)
    for peer in peers:
        peer.close()
    return answers


def _state(peer: socket.socket, drip: bytes) -> str:
    """Return what the server answered on this connection; empty: nothing yet."""
    try:
        if drip:
            peer.send(drip)
        data = peer.recv(1000)
    except BlockingIOError:
        return ""
    except OSError as error:
        return type(error).__name__
    return data.split()[1].decode() if data else "closed"


# --- the web ---


def logins(target: Target) -> Answers:
    """Two hundred sign-ins with wrong passwords, of names that exist and that do not."""
    names = [f"attacker{n % 10}" if n % 2 else f"nobody{n}" for n in range(200)]
    return at_once(partial(_sign_in, target), names)


def _sign_in(target: Target, name: str) -> str:
    with _client() as client, named_errors() as error:
        page = client.get(target.url + "/accounts/login/")
        if page.status_code != 200:
            return f"page {page.status_code}"
        form = {
            "username": name,
            "password": "wrong",
            "csrfmiddlewaretoken": client.cookies.get("csrftoken", ""),
        }
        headers = {"Referer": target.url}
        answer = client.post(target.url + "/accounts/login/", data=form, headers=headers)
        return str(answer.status_code)
    return error[0]


def pictures(target: Target) -> Answers:
    """Forty uploads of a small progressive JPEG that takes very long to decode."""
    bomb = progressive_jpeg(2000, 3000)
    files = {"file": ("a.jpg", bomb, "image/jpeg")}
    data = {"latitude": "50", "longitude": "8", "taken_at": "2026-01-01T00:00:00Z"}
    return at_once(
        lambda who: target.call("POST", "/api/photos", who.tokens[0], files=files, data=data),
        target.attackers * 4,
    )


def endless_names(target: Target) -> Answers:
    """Ten packed imports with two million different names each. The answers are how they ended."""
    names = b"".join(b"<a%d/>" % number for number in range(2_000_000))
    file = gzip.compress(b'<gpx version="1.1"><trk>' + names, 1)
    return at_once(lambda who: _import(target, who.tokens[0], file), target.attackers)


def _import(target: Target, token: str, file: bytes) -> str:
    headers, until = {"Authorization": f"Bearer {token}"}, time.monotonic() + PATIENCE_SECONDS
    files = {"file": ("a.gpx.gz", file)}
    with _client() as client, named_errors() as error:
        answer = client.post(target.url + "/api/imports", headers=headers, files=files)
        while answer.is_success and time.monotonic() < until:
            row = answer.json()
            if row["state"] not in ("receiving", "queued", "parsing"):
                return f"{row['state']}: {row['error'][:64]}"
            time.sleep(1)
            answer = client.get(f"{target.url}/api/imports/{row['id']}", headers=headers)
        return str(answer.status_code)
    return error[0]


def tests_of_silent_endpoints(target: Target) -> Answers:
    """Everybody asks for eight tests of an endpoint that never answers."""
    return _tests(target, 0)


def tests_of_chattering_endpoints(target: Target) -> Answers:
    """Everybody asks for eight tests of an endpoint that sends interim answers without end."""
    return _tests(target, 1)


def _tests(target: Target, index: int) -> Answers:
    return at_once(
        lambda who: target.call(
            "POST", f"/api/endpoints/{who.endpoints[index]}/test", who.tokens[0]
        ),
        target.attackers * 8,
    )


def previews(target: Target) -> Answers:
    """A hundred previews of all events of thirty days."""
    wanted = {"event_type": "*", "role": "project_watcher", "channel": "web"}
    path = "/api/subscriptions/preview?days=30"
    return at_once(
        lambda who: target.call("POST", path, who.tokens[0], json=wanted), target.attackers * 10
    )


def documents(target: Target) -> Answers:
    """A hundred bodies of a megabyte of brackets."""
    body = b"[" + b"{}," * 340_000 + b"{}]"
    headers = {"Content-Type": "application/cloudevents-batch+json"}
    return at_once(
        lambda who: target.call("POST", "/api/events", who.tokens[0], headers, content=body),
        target.attackers * 10,
        threads=16,
    )


def tokens_of_one_user(target: Target) -> Answers:
    """Ten requests with each of a user's hundred tokens."""
    return at_once(
        partial(target.call, "GET", "/api/subscriptions/matrix"), target.attackers[0].tokens * 10
    )


def feeds_of_nothing(target: Target) -> Answers:
    """Five hundred feeds of projects that do not exist, asked for by their ETags."""
    headers = {"If-None-Match": "*"}
    return at_once(
        lambda n: target.call("GET", f"/feeds/projects/p{n}.atom", headers=headers), range(500)
    )


def everything_at_once(target: Target) -> Answers:
    """All of the above together."""
    answers: Answers = Counter()

    def add(attack: Callable[[Target], Answers]) -> None:
        answers.update(attack(target))

    threads = [threading.Thread(target=add, args=[attack]) for attack in ATTACKS[:-1]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


ATTACKS: list[Callable[[Target], Answers]] = [
    silent_connections, half_open_connections, slow_bodies, silent_claims, silent_imports,
    logins, pictures, endless_names,
    tests_of_silent_endpoints, tests_of_chattering_endpoints, previews, documents,
    tokens_of_one_user, feeds_of_nothing, everything_at_once,
]  # fmt: skip
