"""URLs of pages, of feeds, and of the callback of text messages."""

from django.urls import path

from tailrace.subscriptions.channels.rss.views import my_feed
from tailrace.subscriptions.channels.sms.callback import sms_status
from tailrace.subscriptions.pages import (
    endpoints,
    feeds,
    inbox,
    plan,
    why,
)
from tailrace.subscriptions.pages.choices import (
    devices,
    preferences,
    subscription_editor,
    subscriptions,
)
from tailrace.subscriptions.pages.unsubscribe import unsubscribe

signed_in = [
    path("me/subscriptions", subscriptions.my_subscriptions, name="my_subscriptions"),
    path("me/subscriptions/family", subscriptions.my_family, name="my_family"),
    path("me/subscriptions/reset", subscriptions.reset, name="my_subscriptions_reset"),
    path("me/subscriptions/choice", subscription_editor.edit, name="my_choice"),
    path("me/subscriptions/preview", subscription_editor.show_preview, name="my_choice_preview"),
    path("me/inbox", inbox.my_inbox, name="my_inbox"),
    path("me/inbox/count", inbox.count, name="my_inbox_count"),
    path("me/inbox/read", inbox.read_all, name="my_inbox_read"),
    path("me/inbox/<int:id>/read", inbox.mark, {"read": True}, name="my_inbox_read_one"),
    path("me/inbox/<int:id>/unread", inbox.mark, {"read": False}, name="my_inbox_unread"),
    path("me/why/<int:id>", why.why, name="my_why"),
    path("me/why/<int:id>/mute", why.mute, name="my_mute"),
    path("me/feeds", feeds.my_feeds, name="my_feeds"),
    path("me/feeds/<int:id>/revoke", feeds.revoke, name="my_feed_revoke"),
    path("me/endpoints", endpoints.my_endpoints, name="my_endpoints"),
    path("me/endpoints/<int:id>", endpoints.my_endpoint, name="my_endpoint"),
    path("me/endpoints/<int:id>/test", endpoints.test, name="my_endpoint_test"),
    *(
        path(
            f"me/endpoints/<int:id>/{action}",
            endpoints.change_state,
            {"action": action},
            name=f"my_endpoint_{action}",
        )
        for action in endpoints.STATE_CHANGES
    ),
    path("me/endpoints/<int:id>/rotate", endpoints.rotate, name="my_endpoint_rotate"),
    path("me/endpoints/<int:id>/delete", endpoints.delete, name="my_endpoint_delete"),
    path("me/endpoints/<int:id>/settings", endpoints.change_settings, name="my_endpoint_settings"),
    path("me/endpoints/<int:id>/testing", endpoints.testing, name="my_endpoint_testing"),
    path("me/endpoints/<int:id>/recover", endpoints.recover, name="my_endpoint_recover"),
    path("me/endpoints/<int:id>/messages/<int:job>", endpoints.message, name="my_endpoint_message"),
    path(
        "me/endpoints/<int:id>/messages/<int:job>/resend",
        endpoints.resend,
        name="my_endpoint_resend",
    ),
    path("me/plan", plan.my_plan, name="my_plan"),
    path("me/preferences", preferences.my_preferences, name="my_preferences"),
    path("me/preferences/phone/code", preferences.send_code, name="my_preferences_phone_code"),
    path(
        "me/preferences/phone/confirm",
        preferences.confirm_phone,
        name="my_preferences_phone_confirm",
    ),
    path("me/preferences/blocks", preferences.block, name="my_preferences_block"),
    path(
        "me/preferences/blocks/<int:id>/remove", preferences.unblock, name="my_preferences_unblock"
    ),
    path("me/preferences/devices", devices.add, name="my_preferences_device_add"),
    path(
        "me/preferences/devices/<int:id>/remove",
        devices.remove,
        name="my_preferences_device_remove",
    ),
    path("me/preferences/tokens", preferences.make_token, name="my_preferences_token"),
    path(
        "me/preferences/tokens/<int:id>/revoke",
        preferences.revoke_token,
        name="my_preferences_token_revoke",
    ),
]
"""The pages of a signed-in user."""
urlpatterns = [
    *signed_in,
    path("unsubscribe/<str:token>", unsubscribe, name="unsubscribe"),
    path("feeds/me/<str:token>.atom", my_feed, {"form": "atom"}, name="feed"),
    path("feeds/me/<str:token>.rss", my_feed, {"form": "rss"}, name="feed_rss"),
    path("sms/status", sms_status, name="sms_status"),
]
