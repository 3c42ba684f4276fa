"""A browser with push, and what its push service checks (RFC 8030, 8291, 8292)."""

import base64
import json
import os
from typing import Any

import http_ece
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.servers.web import ReceivedRequest


class Browser:
    """The keys of one push subscription."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = os.urandom(16)
        point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.p256dh, self.auth = base64url(point), base64url(self._auth)

    def read(self, request: ReceivedRequest) -> Any:
        """Decrypt the request's body and return its JSON."""
        assert request.headers["content-encoding"] == "aes128gcm"
        assert len(request.body) <= 4096, "the maximum that push services must accept"
        text = http_ece.decrypt(
            request.body, private_key=self._key, auth_secret=self._auth, version="aes128gcm"
        )
        return json.loads(text)


def claims_of(request: ReceivedRequest) -> dict[str, Any]:
    """Check the signature of a VAPID header as a push service does; return what it says, and the
    key it is signed by as `key`."""
    scheme, _, rest = request.headers["authorization"].partition(" ")
    assert scheme == "vapid"
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    signed, _, signature = parts["t"].rpartition(".")
    raw = unbase64url(signature)
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unbase64url(parts["k"]))
    key.verify(
        encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")),
        signed.encode(),
        ec.ECDSA(hashes.SHA256()),
    )
    head, claims = (json.loads(unbase64url(part)) for part in signed.split("."))
    assert head == {"typ": "JWT", "alg": "ES256"}
    return {**claims, "key": parts["k"]}


def base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def unbase64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
