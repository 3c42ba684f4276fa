"""POST each event over HTTP, signed according to Standard Webhooks (standardwebhooks.com)."""

from django.conf import settings
from standardwebhooks import Webhook

from tailrace.domains.builds.destinations.base import Message, Misconfigured
from tailrace.domains.builds.destinations.http_bus import HttpBus
from tailrace.environment.insecure import is_loopback
from tailrace.net.signing import signed_headers, signer


class WebhookBus(HttpBus):
    """POSTs the body with the headers webhook-id, -timestamp and -signature.

    The secret is BUS_SECRET_<NAME>, or BUS_WEBHOOK_SECRET for all buses (whsec_ and base64).
    http:// is only allowed for hosts on this machine, unless the URL ends with `#plain`.
    """

    schemes = ("https", "http")

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url)
        host = self.parts.hostname or ""
        is_local = host and is_loopback(host)
        if self.parts.scheme == "http" and self.parts.fragment != "plain" and not is_local:
            advice = "(use https://, or add #plain to the URL to allow it)"
            raise Misconfigured(f"{self.describe('http:// is not encrypted')} {advice}")
        self.signer = signer_of(name)

    def target(self, message: Message) -> str:
        return self.url.partition("#")[0]

    def headers(self, message: Message) -> dict[str, str]:
        return {
            "content-type": message.content_type,
            "user-agent": "Tailrace",
            **signed_headers(message.message_id, message.body, self.signer),
            "x-routing-key": message.key,
        }


def signer_of(name: str) -> Webhook:
    """Return the signer for the bus of this name; raise Misconfigured if its key is invalid."""
    variable = f"BUS_SECRET_{name.upper().replace('-', '_')}"
    text = settings.BUS_SECRETS.get(variable.removeprefix("BUS_SECRET_"))
    if not text:
        variable, text = f"BUS_WEBHOOK_SECRET or {variable}", settings.BUS_WEBHOOK_SECRET
    try:
        return signer(text)
    except ValueError:
        reason = f"{variable} must be whsec_ followed by a key in base64"
        raise Misconfigured(f"bus {name!r}: {reason}") from None
