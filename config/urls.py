"""All URLs. Each app declares its URLs, with their prefix, in its urls.py."""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path

from tailrace.config.installed_apps import APPS
from tailrace.config.monitoring import metrics
from tailrace.config.monitoring.health import healthz

admin.autodiscover()  # here, so that only processes that serve pages load the admin
urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", healthz, name="readyz"),
    path("metrics", metrics.page, name="metrics"),
    path("admin/", admin.site.urls),
    *(path("", include(f"{app}.urls")) for app in APPS if find_spec(f"{app}.urls")),
]
