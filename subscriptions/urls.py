from django.urls import include, path

from tailrace.subscriptions.channels.rss.views import my_feed
from tailrace.subscriptions.channels.sms.callback import sms_status
from tailrace.subscriptions.pages.unsubscribe import unsubscribe

urlpatterns = [
    path("", include("tailrace.subscriptions.pages.urls")),
    path("unsubscribe/<str:token>", unsubscribe, name="unsubscribe"),
    path("feeds/me/<str:token>.atom", my_feed, {"form": "atom"}, name="feed"),
    path("feeds/me/<str:token>.rss", my_feed, {"form": "rss"}, name="feed_rss"),
    path("sms/status", sms_status, name="sms_status"),
]
