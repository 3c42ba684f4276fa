from django.contrib import admin
from django.urls import include, path
from web import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", views.overview, name="overview"),
    path("vacancies", views.add_vacancy, name="workers"),
    path("async", views.add_from_async_view),
    path("tailrace/", include("tailrace.jobs.platform.pages.urls")),
]
