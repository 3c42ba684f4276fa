"""The overview, at the root of the site."""

from django.urls import path

from jobs import overview

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("overview/panels", overview.poll, name="overview_panels"),
    path(
        "overview/events/<int:id>/acknowledge",
        overview.acknowledge_event,
        name="overview_acknowledge",
    ),
]
