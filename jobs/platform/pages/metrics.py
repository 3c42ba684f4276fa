"""The metrics for Prometheus, at /metrics: for monitoring with HEALTH_TOKEN, and for staff who may
see queues. They describe the whole system, so any web process can be scraped."""

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from tailrace.jobs.platform.inspection import metrics
from tailrace.jobs.platform.pages.access import has_token, may_see_queues


class Figures(Collector):
    def collect(self) -> Iterable[Metric]:
        return metrics.current()


_registry = CollectorRegistry(auto_describe=False)
_registry.register(Figures())


@never_cache
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Return the metrics in the format that the client accepts, or 401 without access."""
    if not (has_token(request) or may_see_queues(request)):
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(_registry), content_type=content_type)
