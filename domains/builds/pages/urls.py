from django.urls import path

from tailrace.domains.builds.pages.feeds import commit_feed

app_name = "builds"
urlpatterns = [
    path("feeds/projects/<str:project>.atom", commit_feed, name="commit_feed"),
]
