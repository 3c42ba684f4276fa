"""Send the measurements of events to buses."""

from collections.abc import Sequence

from django.conf import settings

from tailrace.domains.builds.destinations.base import Message
from tailrace.domains.builds.event_types.base import BuildsEvent, builds_type
from tailrace.domains.builds.event_types.metric import METRICS_KEY, Metric
from tailrace.domains.builds.handlers.notify_backend import NotifyBackend, routing_key
from tailrace.events.publish import Recorded


class SendMetrics(NotifyBackend):
    """Send the event's measurement to each bus of BUS_METRICS, as text with routing key `metrics`.

    It is sent in addition to the event's own message, like in OBS (`send_to_bus` of Event::Base).
    """

    name = "builds.send_metrics"

    def wants(self, event: Recorded) -> bool:
        return bool(settings.BUS_METRICS and _metric_line(event))

    def routing_keys(self, event: Recorded) -> Sequence[str]:
        return settings.BUS_METRICS

    def message_of(self, event: Recorded, event_type: type[BuildsEvent]) -> Message:
        return Message(
            event.id, routing_key(METRICS_KEY), _metric_line(event).encode(), is_metric=True
        )


def _metric_line(event: Recorded) -> str:
    event_type = builds_type(event)
    metric: Metric | None = event_type.metric(event.raw_payload) if event_type else None
    return metric.line() if metric else ""
