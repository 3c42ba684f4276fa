"""The overview, at the root of the site."""

from django.urls import path

from jobs.overview import page

urlpatterns = [
    path("", page.overview, name="overview"),
    path("overview/panels", page.poll, name="overview_panels"),
    path(
        "overview/events/<int:id>/acknowledge",
        page.acknowledge_event,
        name="overview_acknowledge",
    ),
]
