"""The REST API of subscriptions, one module per resource."""

from tailrace.subscriptions.api import endpoints, events, feeds, inbox, plan_subscriptions, plans
from tailrace.subscriptions.api.choices import blocks, preferences, subscriptions
from tailrace.subscriptions.api.webhook_messages import webhooks
from tailrace.subscriptions.channels.rss.feeds import TooManyFeeds
from tailrace.subscriptions.channels.sms.confirmation import PhoneError
from tailrace.subscriptions.channels.webhook.operations.endpoints import (
    TooManyEndpoints,
    TooManyTests,
)
from tailrace.subscriptions.channels.webhook.operations.errors import EndpointError, FilterError
from tailrace.web.api.problems import Problem, too_many_requests, wrong_field

__all__ = ["errors", "routers", "scopes", "webhooks"]

routers = {
    "/subscriptions": subscriptions.router,
    "/blocks": blocks.router,
    "/preferences": preferences.router,
    "/inbox": inbox.router,
    "/feeds": feeds.router,
    "/endpoints": endpoints.router,
    "/events": events.router,
    "/plans": plans.plans,
    "/plan": plans.plan,
    "/plan-subscriptions": plan_subscriptions.router,
}
scopes = {
    "subscriptions:read": "read your subscriptions, blocked users and preferences",
    "subscriptions:write": "change your subscriptions, blocked users and preferences",
    "inbox:read": "read your inbox and your groups' inboxes",
    "inbox:write": "mark items of these inboxes as read or unread",
    "feeds": "list, create and revoke your feeds",
    "endpoints": "list, create and change your webhook endpoints, and replay deliveries",
    "events:read": "read events, with the permissions of the user",
    "events:write": "record events, with the permissions of the user",
    "plans:read": "read the plans, and your own subscription to a plan",
    "plans:write": "subscribe accounts to plans, with the permissions of the user",
}
errors = {
    EndpointError: lambda error: Problem(409, str(error)),
    FilterError: lambda error: wrong_field(error.field, str(error)),
    PhoneError: lambda error: Problem(409, str(error)),
    TooManyEndpoints: lambda error: Problem(409, str(error), kind="too-many"),
    TooManyFeeds: lambda error: Problem(409, str(error), kind="too-many"),
    TooManyTests: lambda error: too_many_requests(str(error), error.wait),
}
