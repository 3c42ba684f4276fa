"""Notify the plugins of a build service's backend (obs+http://, obs+https://)."""

import json
from urllib.parse import quote

from tailrace.domains.builds.destinations.base import Message, Misconfigured
from tailrace.domains.builds.destinations.http_bus import HttpBus
from tailrace.domains.builds.event_types.base import BuildsEvent


class BackendBus(HttpBus):
    """POSTs the payload to `/notify_plugins/TYPE`, as `notify_backend` of OBS's Event::Base did.

    TYPE is the event type's name in the notification log; types without such a name are not sent.
    The body is the payload as JSON, with the event's `time` in seconds since 1970. The backend
    calls its `$notification_plugin`s and appends nothing to its log (BSSrcServer/Notify.pm), so
    events may be sent back to the backend that reported them.
    """

    schemes = ("obs+https", "obs+http")

    @classmethod
    def takes(cls, event_type: type[BuildsEvent]) -> bool:
        return bool(event_type.raw_type)

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url)
        if not self.parts.hostname or self.parts.query or self.parts.fragment:
            raise Misconfigured(self.describe("the URL must have the form obs+https://host:port"))
        self._base = url.removeprefix("obs+").rstrip("/")

    def target(self, message: Message) -> str:
        return f"{self._base}/notify_plugins/{quote(message.raw_type, safe='')}"

    def headers(self, message: Message) -> dict[str, str]:
        return {"content-type": "application/json", "user-agent": "Tailrace"}

    def content(self, message: Message) -> bytes:
        payload = json.loads(message.body) | {"time": message.occurred_at}
        return json.dumps(payload, ensure_ascii=False).encode(errors="replace")
