"""Sign HTTP requests as Standard Webhooks describes (standardwebhooks.com)."""

import base64
import secrets
from typing import TYPE_CHECKING

from tailrace.db import clock

if TYPE_CHECKING:  # the core works without the package
    from standardwebhooks import Webhook

PREFIX = "whsec_"
SECRET_BYTES = 32
HEADERS = {
    "webhook-id": "The id of the message. It stays the same when the message is sent again.",
    "webhook-timestamp": "When this attempt was signed, in seconds since 1970. Refuse messages that"
    " are older than five minutes.",
    "webhook-signature": "`v1,` and the HMAC-SHA256 of `id.timestamp.body` with the secret, in"
    " base64. After a change of the secret there are several signatures, separated by spaces; one"
    " of them must match.",
}
"""The meaning of the headers with a signature (Standard Webhooks)."""


def new_secret() -> str:
    """Return a new secret as text that receivers can enter: PREFIX and base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signer(secret: str) -> "Webhook":
    """Return a signer that uses the secret. Raises ValueError if it is not PREFIX and base64."""
    from standardwebhooks import Webhook

    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if not key or not secret.startswith(PREFIX):
        raise ValueError(f"a webhook secret must be {PREFIX} followed by a key in base64")
    return Webhook(key)


def signed_headers(id: str, body: bytes, *signers: "Webhook") -> dict[str, str]:
    """Return the headers webhook-id, -timestamp and -signature, with one signature per signer."""
    now = clock.now()
    return {
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signer.sign(id, now, body.decode()) for signer in signers),
    }
