"""The overview, at the root of the site."""

from django.urls import path

from tailrace.jobs.platform.pages import page, storage, workers

urlpatterns = [
    path("", page.overview, name="overview"),
    path("overview/panels", page.poll, name="overview_panels"),
    path("overview/mend/<slug:code>", page.mend, name="overview_mend"),
    path("overview/workers", workers.workers, name="workers"),
    path("overview/workers/now", workers.workers_now, name="workers_now"),
    path("overview/storage", storage.storage, name="storage"),
    path("overview/storage/now", storage.storage_now, name="storage_now"),
    path(
        "overview/events/<int:id>/acknowledge",
        page.acknowledge_event,
        name="overview_acknowledge",
    ),
]
