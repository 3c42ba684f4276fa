"""The admin of circuit breakers: destinations with recent failures."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from tailrace.db import clock
from tailrace.jobs.destinations import breaker
from tailrace.jobs.models import Breaker
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists.pagination import ReadOnlyAdmin
from tailrace.jobs.platform.admin.lists.several import filter_in_words
from tailrace.jobs.runtime import audit


@admin.register(Breaker)
class BreakerAdmin(ReadOnlyAdmin, ModelAdmin):
    """Destinations with recent failures. After a breaker is closed, jobs are sent again at once."""

    list_display = ("name", "state", "failures", "until", "failed", "last_error")
    fields = (("name", "state"), "failures", "opened", "until", "failed", "last_error")
    actions = ("close",)
    until = rendering.time_column("open_until")
    failed = rendering.time_column("failed_at")
    state = rendering.column(
        "state",
        lambda row: row.state_at(clock.now()),
        label={"closed": "success", "degraded": "warning", "open": "danger", "half-open": "info"},
    )

    def has_close_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("tailrace_jobs.close_breaker")

    @admin.action(description="Close, and send again now", permissions=["close"])
    def close(self, request: HttpRequest, queryset: QuerySet[Breaker]) -> None:
        rows = list(queryset)
        for row in rows:
            breaker.record_success(row.name)
        closed = [(row.pk, row.name) for row in rows]
        audit.record(request.user, Breaker, "closed", closed, filter_in_words(request))
        self.message_user(request, f"Breakers closed: {len(rows)}.", messages.SUCCESS)
