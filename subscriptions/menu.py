"""The links of subscriptions: pages of a person, and the admin's sidebar."""

from django.contrib.auth.models import User

from subscriptions.models import Preferences
from subscriptions.pages.inbox import unread_badge
from web.menu import AdminLink, AdminSection, PageLink


def time_zone_of(user: User) -> str | None:
    return Preferences.objects.filter(user=user).values_list("time_zone", flat=True).first()


PAGE_LINKS = [
    PageLink("Subscriptions", "my_subscriptions"),
    PageLink("Inbox", "my_inbox", badge=unread_badge),
    PageLink("Feeds", "my_feeds"),
    PageLink("Webhooks", "my_endpoints"),
    PageLink("Plan", "my_plan"),
    PageLink("Preferences", "my_preferences"),
]
ADMIN_MENU = AdminSection(
    "Subscriptions",
    [
        AdminLink("Subscriptions", "tune", "subscriptions.eventsubscription"),
        AdminLink("Notifications", "notifications", "subscriptions.notification"),
        AdminLink("Feeds", "rss_feed", "subscriptions.feed"),
        AdminLink("API tokens", "key", "subscriptions.apitoken"),
        AdminLink("Group addresses", "alternate_email", "subscriptions.groupaddress"),
        AdminLink("Plans", "loyalty", "subscriptions.plan"),
        AdminLink("Plan subscriptions", "card_membership", "subscriptions.plansubscription"),
    ],
)
