"""The admin of subscriptions, blocks, feeds, group addresses and notifications."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminTextInputWidget

from tailrace.events.catalog.topics import all_topic_names
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.admin.lists.several import filter_in_words
from tailrace.jobs.platform.inspection.visibility import user_of
from tailrace.jobs.runtime import audit
from tailrace.subscriptions.channels.rss.feeds import revoke_feed
from tailrace.subscriptions.models import (
    Block,
    EventSubscription,
    Feed,
    FeedItem,
    GroupAddress,
    Notification,
)
from tailrace.subscriptions.notifications.audience.preview import preview
from tailrace.subscriptions.notifications.notify.catch_up import catch_up, days_ago
from tailrace.subscriptions.types import roles

PREVIEW_DAYS = 7.0


@admin.register(EventSubscription)
class EventSubscriptionAdmin(ModelAdmin):
    """A row without user and group is a default: switch it off instead of deleting it."""

    fields = ("event_type", "role", "user", "group", "channel", "state", "pace", "subject_pattern")
    list_display = ("event_type", "role", "receiver", "channel", "state", "subject_pattern")
    list_filter = ("channel", "state", "role")
    list_select_related = ("user", "group")
    search_fields = ("event_type", "user__username", "group__name")
    autocomplete_fields = ("user", "group")
    ordering = ("event_type", "role", "channel", "id")
    change_form_outer_after_template = "tailrace/subscriptions/admin/catch_up.html"

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return matching events and missing deliveries, which are shown below the form."""
        row = self.get_object(request, object_id)
        if row is None or not self.has_view_permission(request, row):
            return {}
        return _missed_deliveries(row, request.GET.get("days", ""), user_of(request))

    def get_urls(self) -> list[Any]:
        catch_up = self.route("<int:id>/catch_up/", require_POST(self.catch_up_view), "catch_up")
        return [catch_up, *super().get_urls()]

    def catch_up_view(self, request: HttpRequest, id: int) -> HttpResponse:
        """Enqueue the missing deliveries of the last `days` days."""
        row = get_object_or_404(EventSubscription, pk=id)
        if not (
            self.has_change_permission(request, row)
            and request.user.has_perm("tailrace_jobs.replay_job")
        ):
            raise PermissionDenied
        try:
            result = catch_up(row, days_ago(request.POST.get("days", "")), deliver=True)
        except ValueError as error:
            messages.error(request, str(error))
        else:
            deliveries = f"{result.missing} deliver{'y' if result.missing == 1 else 'ies'}"
            self.log_change(request, row, f"catch up: {deliveries}")
            messages.success(request, f"{deliveries} enqueued.")
        return redirect(self.address("change", id))

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> type[ModelForm]:
        """Show short inputs, and the available names of event types and roles."""
        form: type[ModelForm] = super().get_form(request, obj, **kwargs)
        names = {
            "event_type": all_topic_names(),
            "role": [role.name for role in roles.all_roles()],
            "subject_pattern": [],
        }
        for name, known in names.items():
            if field := form.base_fields.get(name):
                field.widget = UnfoldAdminTextInputWidget()
                field.help_text += f". Available: {', '.join(known)}" if known else ""
        return form


def _missed_deliveries(subscription: EventSubscription, days: str, viewer: User) -> dict[str, Any]:
    """Return a preview and, unless `days` is empty, the number of missing deliveries."""
    context: dict[str, Any] = {
        "preview": preview(subscription, PREVIEW_DAYS, viewer),
        "days": days or f"{PREVIEW_DAYS:g}",
    }
    if days:
        try:
            context["missing"] = catch_up(subscription, days_ago(days)).missing
        except ValueError as error:
            context["catch_up_error"] = str(error)
    return context


@admin.register(Block)
class BlockAdmin(ModelAdmin):
    list_display = ("user", "blocked")
    list_select_related = ("user", "blocked")
    autocomplete_fields = ("user", "blocked")
    search_fields = ("user__username", "blocked__username")


@admin.register(GroupAddress)
class GroupAddressAdmin(ModelAdmin):
    list_display = ("group", "email")
    list_select_related = ("group",)
    autocomplete_fields = ("group",)
    search_fields = ("group__name", "email")


@admin.register(Feed)
class FeedAdmin(ModelAdmin):
    """Feeds are created with `manage.py make_feed`, which prints the URL, and revoked here."""

    list_display = ("user", "title", "created_at", "revoked_at")
    list_select_related = ("user",)
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("user__username", "title")
    fields = ("user", "title", "created_at", "revoked_at")
    readonly_fields = ("user", "created_at", "revoked_at")
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.action(description="Revoke: the URLs stop working", permissions=["change"])
    def revoke(self, request: HttpRequest, feeds: QuerySet[Feed]) -> None:
        """Revoke the selected feeds, and record each change."""
        revoked = list(feeds.filter(revoked_at=None))
        for feed in revoked:
            revoke_feed(feed)
        names = [(feed.pk, str(feed)) for feed in revoked]
        audit.record(request.user, Feed, "revoked", names, filter_in_words(request))


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("id", "created_at", "event_id", "user", "group", "role")
    list_select_related = ("user", "group")
    search_fields = ("event__id__exact", "user__username__exact")
    search_help_text = "An event's id or a full login"


@admin.register(FeedItem)
class FeedItemAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("id", "created_at", "user", "event_id", "role")
    list_select_related = ("user",)
    search_fields = ("user__username__exact",)
    search_help_text = "A full login"
