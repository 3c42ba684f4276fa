"""The pages of a signed-in person."""

from django.urls import path
from django.views.generic import RedirectView

from subscriptions.pages import (
    choice,
    my_blocks,
    my_devices,
    my_endpoints,
    my_feeds,
    my_inbox,
    my_preferences,
    my_subscriptions,
    my_tokens,
    sign_in,
)

urlpatterns = [
    path("accounts/login/", sign_in.SignIn.as_view(), name="login"),
    path("accounts/logout/", sign_in.SignOut.as_view(), name="logout"),
    path("me/", RedirectView.as_view(pattern_name="my_subscriptions"), name="me"),
    path("me/subscriptions", my_subscriptions.my_subscriptions, name="my_subscriptions"),
    path("me/subscriptions/family", my_subscriptions.my_family, name="my_family"),
    path("me/subscriptions/reset", my_subscriptions.reset, name="my_subscriptions_reset"),
    path("me/subscriptions/choice", choice.choice, name="my_choice"),
    path("me/subscriptions/preview", choice.choice_preview, name="my_choice_preview"),
    path("me/inbox", my_inbox.my_inbox, name="my_inbox"),
    path("me/inbox/count", my_inbox.count, name="my_inbox_count"),
    path("me/inbox/read", my_inbox.read_all, name="my_inbox_read"),
    path("me/inbox/<int:id>/read", my_inbox.mark, {"read": True}, name="my_inbox_read_one"),
    path("me/inbox/<int:id>/unread", my_inbox.mark, {"read": False}, name="my_inbox_unread"),
    path("me/feeds", my_feeds.my_feeds, name="my_feeds"),
    path("me/feeds/<int:id>/revoke", my_feeds.revoke, name="my_feed_revoke"),
    path("me/endpoints", my_endpoints.my_endpoints, name="my_endpoints"),
    path("me/endpoints/<int:id>", my_endpoints.my_endpoint, name="my_endpoint"),
    path("me/endpoints/<int:id>/test", my_endpoints.test, name="my_endpoint_test"),
    *(
        path(f"me/endpoints/<int:id>/{to}", my_endpoints.move, {"to": to}, name=f"my_endpoint_{to}")
        for to in my_endpoints.MOVES
    ),
    path("me/endpoints/<int:id>/rotate", my_endpoints.rotate, name="my_endpoint_rotate"),
    path("me/endpoints/<int:id>/delete", my_endpoints.delete, name="my_endpoint_delete"),
    path(
        "me/endpoints/<int:id>/deliveries/<int:delivery>/replay",
        my_endpoints.replay,
        name="my_endpoint_replay",
    ),
    path("me/preferences", my_preferences.my_preferences, name="my_preferences"),
    path("me/preferences/blocks", my_blocks.block, name="my_preferences_block"),
    path("me/preferences/blocks/<int:id>/remove", my_blocks.unblock, name="my_preferences_unblock"),
    path("me/preferences/devices", my_devices.add, name="my_preferences_device_add"),
    path(
        "me/preferences/devices/<int:id>/remove",
        my_devices.remove,
        name="my_preferences_device_remove",
    ),
    path("me/preferences/tokens", my_tokens.make, name="my_preferences_token"),
    path(
        "me/preferences/tokens/<int:id>/revoke",
        my_tokens.revoke,
        name="my_preferences_token_revoke",
    ),
]
