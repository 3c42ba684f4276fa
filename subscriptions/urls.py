from django.urls import include, path

from subscriptions.channels.rss.views import my_feed
from subscriptions.channels.sms.callback import sms_status
from subscriptions.pages.unsubscribe import unsubscribe

urlpatterns = [
    path("", include("subscriptions.pages.urls")),
    path("unsubscribe/<str:token>", unsubscribe, name="unsubscribe"),
    path("feeds/me/<str:token>.atom", my_feed, {"form": "atom"}, name="feed"),
    path("feeds/me/<str:token>.rss", my_feed, {"form": "rss"}, name="feed_rss"),
    path("sms/status", sms_status, name="sms_status"),
]
