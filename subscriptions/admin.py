"""Admin of subscriptions, blocks, feeds, group addresses and notifications."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextInputWidget

from events import clock
from jobs.admin.paging import KeysetAdmin, ReadOnlyAdmin
from subscriptions import retro, roles
from subscriptions.brought import brought, days_ago, deliveries
from subscriptions.lineage import known_names
from subscriptions.models import (
    Block,
    EventSubscription,
    Feed,
    FeedItem,
    GroupAddress,
    Notification,
)


@admin.register(EventSubscription)
class EventSubscriptionAdmin(ModelAdmin):
    """A row without user and group is the default: switch it off rather than delete it."""

    list_display = ("event_type", "role", "receiver", "channel", "state", "subject_pattern")
    list_filter = ("channel", "state", "role")
    list_select_related = ("user", "group")
    search_fields = ("event_type", "user__username", "group__name")
    autocomplete_fields = ("user", "group")
    ordering = ("event_type", "role", "channel", "id")
    change_form_outer_after_template = "subscriptions/admin/brought.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show beside the row what it brought, and what a retro-delivery would."""
        row = self.get_object(request, object_id)
        more = dict(extra_context or {})
        if row is not None and self.has_view_permission(request, row):
            more |= brought(row, request.GET.get("days", ""))
        return super().change_view(request, object_id, form_url, more)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(require_POST(self.retro_view))
        name = "subscriptions_eventsubscription_retro"
        return [path("<int:id>/retro/", view, name=name), *super().get_urls()]

    def retro_view(self, request: HttpRequest, id: int) -> HttpResponse:
        """Deliver what the row should have brought in the last `days`."""
        row = get_object_or_404(EventSubscription, pk=id)
        if not (
            self.has_change_permission(request, row) and request.user.has_perm("jobs.replay_job")
        ):
            raise PermissionDenied
        try:
            found = retro.retro(row, days_ago(request.POST.get("days", "")), deliver=True)
        except ValueError as error:
            messages.error(request, str(error))
        else:
            self.log_change(request, row, f"retro-delivery of {found.owed}")
            messages.success(request, f"{deliveries(found.owed)} owed now.")
        return redirect("admin:subscriptions_eventsubscription_change", id)

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> type[ModelForm]:
        """Offer the known names of types and roles while one types."""
        form: type[ModelForm] = super().get_form(request, obj, **kwargs)
        for field in ("event_type", "role", "subject_pattern"):
            if field in form.base_fields:
                form.base_fields[field].widget = UnfoldAdminTextInputWidget()
        for field, known in (
            ("event_type", known_names()),
            ("role", [role.name for role in roles.everything()]),
        ):
            if field in form.base_fields:
                form.base_fields[field].help_text += f". Known: {', '.join(known)}"
        return form


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
    """Feeds are made by `manage.py make_feed`, which shows the address; here they are revoked."""

    list_display = ("user", "title", "created_at", "revoked_at")
    list_select_related = ("user",)
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("user__username", "title")
    fields = ("user", "title", "created_at", "revoked_at")
    readonly_fields = ("user", "created_at", "revoked_at")
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.action(description="Revoke: their addresses open nothing any more")
    def revoke(self, request: HttpRequest, feeds: QuerySet[Feed]) -> None:
        """Revoke the chosen feeds and note each in the admin's log."""
        for feed in feeds.filter(revoked_at=None):
            feed.revoked_at = clock.now()
            feed.save(update_fields=["revoked_at"])
            self.log_change(request, feed, "revoked")

    revoke.allowed_permissions = ("change",)  # type: ignore[attr-defined]


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("id", "created_at", "event_id", "user", "group", "role")
    list_select_related = ("user", "group")
    search_fields = ("event__id__exact", "user__username__exact")
    search_help_text = "An event's number or a login, whole"


@admin.register(FeedItem)
class FeedItemAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("id", "created_at", "user", "event_id", "role")
    list_select_related = ("user",)
    search_fields = ("user__username__exact",)
    search_help_text = "A login, whole"
