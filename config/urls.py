"""All URLs. Each app declares its URLs, with their prefix, in urls.py,
pages/urls.py or platform/pages/urls.py."""

from django.apps import apps
from django.contrib import admin
from django.urls import include, path

from tailrace.config.installed_apps import APPS
from tailrace.config.monitoring.health import healthz
from tailrace.environment.discovery import find_module, import_modules

import_modules("admin")  # here, so that only processes that serve pages load the admin
urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", healthz, name="readyz"),
    path("admin/", admin.site.urls),
    *(
        path("", include(module))
        for app in apps.get_app_configs()
        if app.name in APPS
        and (module := find_module(app, "urls") or find_module(app, "pages.urls"))
    ),
]
