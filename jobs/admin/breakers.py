"""The admin of breakers: destinations that failed of late."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from events import clock
from jobs import breaker
from jobs.admin import cells
from jobs.admin.paging import ReadOnlyAdmin
from jobs.models import Breaker


@admin.register(Breaker)
class BreakerAdmin(ReadOnlyAdmin, ModelAdmin):
    """Destinations that failed of late; one that was repaired need not wait for its next try."""

    list_display = ("name", "stands", "failures", "until", "failed", "last_error")
    actions = ("close",)
    until = cells.time_of("open_until")
    failed = cells.time_of("failed_at")

    def has_close_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("jobs.close_breaker")

    @display(
        description="stands",
        label={
            "well": "success",
            "shaky": "warning",
            "left alone": "danger",
            "to be tried": "info",
        },
    )
    def stands(self, row: Breaker) -> str:
        return row.stands_at(clock.now())

    @action(description="Close: send again at once", permissions=["close"])
    def close(self, request: HttpRequest, queryset: QuerySet[Breaker]) -> None:
        closed = list(queryset)
        for row in closed:
            breaker.succeeded(row.name)
            self.log_change(request, row, "closed")
        self.message_user(request, f"{len(closed)} closed", messages.SUCCESS)
