from django.urls import path

from subscriptions.views import my_feed

urlpatterns = [
    path("feeds/me/<str:token>.atom", my_feed, name="feed"),
]
