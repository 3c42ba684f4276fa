"""The overview and the metrics, on the platform at the root of the site."""

from django.urls import path

from tailrace.jobs.platform.pages import metrics
from tailrace.jobs.platform.pages.latency import latency
from tailrace.jobs.platform.pages.page import (
    acknowledge_event,
    acknowledge_events,
    mend,
    overview,
    poll,
)
from tailrace.jobs.platform.pages.storage import storage
from tailrace.jobs.platform.pages.workers import workers


def _template(name: str) -> dict[str, str]:
    return {"template": f"tailrace/jobs/{name}.html"}


app_name = "tailrace"
urlpatterns = [
    path("metrics", metrics.page, name="metrics"),
    path("", overview, name="overview"),
    path("overview/panels", poll, name="overview_panels"),
    path("overview/mend/<slug:code>", mend, name="overview_mend"),
    path("overview/workers", workers, _template("workers"), name="workers"),
    path("overview/workers/now", workers, _template("workers_now"), name="workers_now"),
    path("overview/latency", latency, _template("latency"), name="latency"),
    path("overview/latency/now", latency, _template("latency_now"), name="latency_now"),
    path("overview/storage", storage, _template("storage"), name="storage"),
    path("overview/storage/now", storage, _template("storage_now"), name="storage_now"),
    path("overview/events/acknowledge", acknowledge_events, name="overview_acknowledge_all"),
    path("overview/events/<int:id>/acknowledge", acknowledge_event, name="overview_acknowledge"),
]
