"""Sign HTTP requests as Standard Webhooks describes (standardwebhooks.com)."""

import base64
import secrets
from typing import TYPE_CHECKING

from tailrace.db import clock

if TYPE_CHECKING:  # the core does without the package
    from standardwebhooks import Webhook

PREFIX = "whsec_"
SECRET_BYTES = 32
HEADERS = {
    "webhook-id": "What the message is recognized by: the same whenever it is sent again.",
    "webhook-timestamp": "When this try was signed, in seconds since 1970; refuse what is older"
    " than five minutes.",
    "webhook-signature": "`v1,` and the HMAC-SHA256 of `id.timestamp.body` by the secret, in"
    " base64. After the secret was changed there are several, between spaces: one has to fit.",
}
"""What the headers of a signature mean (Standard Webhooks)."""


def new_secret() -> str:
    """Return a new secret, in the form in which receivers enter it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signer(secret: str) -> "Webhook":
    """Return what signs with the secret; ValueError if it is not whsec_ and base64."""
    from standardwebhooks import Webhook

    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if not key or not secret.startswith(PREFIX):
        raise ValueError(f"a webhook secret is {PREFIX} followed by a key in base64")
    return Webhook(key)


def signed_headers(id: str, body: bytes, *signers: "Webhook") -> dict[str, str]:
    """Return the headers webhook-id, -timestamp and -signature, with one signature per signer."""
    now = clock.now()
    return {
        "webhook-id": id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signer.sign(id, now, body.decode()) for signer in signers),
    }
