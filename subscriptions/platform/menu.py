"""The menu links of subscriptions: a user's own pages, and the admin's sidebar."""

from django.contrib.auth.models import User

from tailrace.subscriptions.models import Preferences
from tailrace.subscriptions.pages.inbox import unread_badge
from tailrace.web.pages.menu import AdminLink, AdminSection, PageLink


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
        AdminLink("Subscriptions", "tune", "tailrace_subscriptions.eventsubscription"),
        AdminLink("Notifications", "notifications", "tailrace_subscriptions.notification"),
        AdminLink("Feeds", "rss_feed", "tailrace_subscriptions.feed"),
        AdminLink("API tokens", "key", "tailrace_subscriptions.apitoken"),
        AdminLink("Group addresses", "alternate_email", "tailrace_subscriptions.groupaddress"),
        AdminLink("Plans", "loyalty", "tailrace_subscriptions.plan"),
        AdminLink(
            "Plan subscriptions", "card_membership", "tailrace_subscriptions.plansubscription"
        ),
    ],
)
