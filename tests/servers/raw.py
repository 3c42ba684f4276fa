"""Servers that misbehave below HTTP, and one that speaks TLS with a self-signed certificate."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.servers.web import Responder, Server, serving


@contextmanager
def conversing(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """Run `talk` with each peer in a thread; yield the port."""
    over = threading.Event()

    def accept(listening: socket.socket) -> None:
        while not over.is_set():
            with suppress(OSError):
                peer, _address = listening.accept()
                threading.Thread(target=answer, args=(peer,), daemon=True).start()

    def answer(peer: socket.socket) -> None:
        with peer, suppress(OSError):
            peer.settimeout(10)
            talk(peer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        thread = threading.Thread(target=accept, args=(listening,), daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            over.set()
            thread.join()


@contextmanager
def hanging(given_up: Callable[[], object]) -> Iterator[int]:
    """Accept connections and never answer; call `given_up` for each that the client closes."""

    def talk(peer: socket.socket) -> None:
        peer.settimeout(None)
        with suppress(ConnectionError):
            while peer.recv(65536):
                pass
        given_up()

    with conversing(talk) as port:
        yield port


def read_request(peer: socket.socket) -> bytes:
    """Read one request with a Content-Length, and return it."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += peer.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().splitlines()
        if line.startswith(b"content-length:")
    )
    while len(body) < length:
        body += peer.recv(65536)
    return received


class Authority:
    """Signs certificates; `file` is its own, for clients that trust it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of a test")])
        own = _builder(self._name, self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.file = folder / "authority.pem"
        self.file.write_bytes(
            own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )

    def context(self, *names: str, days: int = 1) -> ssl.SSLContext:
        """Return a server's context with a certificate for these names or addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's server")])
        builder = _builder(subject, self._name, key.public_key(), days).add_extension(
            x509.SubjectAlternativeName([_name(name) for name in names]), critical=False
        )
        signed = builder.sign(self._key, hashes.SHA256())
        file = self._folder / "server.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + signed.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


@contextmanager
def serving_tls(respond: Responder, context: ssl.SSLContext) -> Iterator[Server]:
    """Serve https until the block is left."""
    with serving(respond) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.url = server.url.replace("http:", "https:")
        yield server


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int = 1
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=3))
        .not_valid_after(now + timedelta(days=days))
    )
