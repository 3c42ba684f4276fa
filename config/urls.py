"""All addresses."""

from django.contrib import admin
from django.urls import include, path

from config.health import healthz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("admin/", admin.site.urls),
    path("api/", include("subscriptions.api.urls")),
    path("", include("jobs.urls")),
    path("", include("domains.builds.urls")),
    path("", include("domains.photos.urls")),
    path("", include("subscriptions.urls")),
]
