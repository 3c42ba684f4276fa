"""All URLs: those of each app are in its urls.py, with the prefix that it chooses."""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path

from tailrace.config.installed_apps import APPS
from tailrace.config.monitoring import metrics
from tailrace.config.monitoring.health import healthz

admin.autodiscover()  # here, and not when each process starts: only those that serve pages pay
urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", healthz, name="readyz"),
    path("metrics", metrics.page, name="metrics"),
    path("admin/", admin.site.urls),
    *(path("", include(f"{app}.urls")) for app in APPS if find_spec(f"{app}.urls")),
]
