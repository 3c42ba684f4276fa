"""The domain's pages."""

from django.urls import path

from domains.protection.pages import overview

app_name = "protection"
urlpatterns = [
    path("protection/", overview.overview, name="overview"),
]
