"""The admin of imports: numbers, states and failures, but no locations."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html, format_html_join
from unfold.decorators import display

from tailrace.db.query import database_now
from tailrace.domains.timeline.imports.files.parsing.file_errors import error_position
from tailrace.domains.timeline.imports.progress import points_per_second
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.platform import inspection
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB_PAYLOAD

ImportState = filters.column_filter("state", lambda: Import.State.choices)
INDEXED_STATES = {"receiving", "queued", "parsing", "needs_decision", "grace", "promoting"}
HIDDEN = f"You need the permission {VIEW_JOB_PAYLOAD} to see the error: it may quote the file."


@admin.register(Import)
class ImportAdmin(filters.SearchById, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = (
        "id",
        "user",
        "status",
        "queue_position",
        "megabytes",
        "staged",
        "staged_table",
        "speed",
        "rejected",
        "inserted",
        "duplicates",
        "fault",
        "created",
    )
    list_select_related = ("user",)
    list_filter = (ImportState,)
    created, ended = rendering.time_column("created_at"), rendering.time_column("ended_at")
    due = rendering.time_column("promote_at", "promoted from")
    promoted = rendering.time_column("promoted_at")
    fieldsets = (
        (None, {"fields": (("status", "user"), ("created", "ended"), ("due", "promoted"))}),
        ("Queues", {"fields": (("promotion", "job"), ("speed", "times_lost"))}),
        ("File", {"fields": (("megabytes", "formats"), "fault", "error_text")}),
        (
            "Points",
            {
                "fields": (
                    ("staged", "staged_table", "expected_duplicates"),
                    ("inserted", "duplicates", "removed"),
                    ("rejected", "rejected_points"),
                )
            },
        ),
    )

    def scans(self, params: dict[str, str]) -> bool:
        return "state" in params and params["state"] not in INDEXED_STATES

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        """Add to each row the values that are not columns of its table."""
        now, sizes, jobs = database_now(), inspection.staged_bytes(rows), inspection.jobs_of(rows)
        line = {promotion.import_id: promotion for promotion in inspection.promotion_line()}
        for row in rows:
            row.promotion, row.staged_bytes = line.get(row.pk), sizes.get(row.pk)
            row.job, row.points_per_second = jobs.get(row.pk), points_per_second(row, now)

    def complete_page(self, request: HttpRequest, row: Any) -> None:
        self.complete(request, [row])
        row.may_read_errors = request.user.has_perm(VIEW_JOB_PAYLOAD)
        row.may_see_jobs = request.user.has_perm("tailrace_jobs.view_job")

    status = rendering.column(
        "state",
        lambda row: str(Import.State(row.state).label).lower(),
        label={
            "completed": "success",
            "failed": "danger",
            "needs a decision": "warning",
            "parsing": "info",
            "promoting": "info",
        },
    )

    @display(description="position")
    def queue_position(self, row: Any) -> str:
        if row.promotion is not None:
            return "running" if row.promotion.running else f"{row.promotion.before:,} ahead"
        waits = row.state == Import.State.GRACE and row.job is not None
        return f"{inspection.MOST_COUNTED:,} or more ahead" if waits else "–"

    @display(description="position in the promotion queue")
    def promotion(self, row: Any) -> str:
        if row.promotion is None or row.promotion.running:
            return self.queue_position(row)
        return f"{self.queue_position(row)}, due {rendering.timestamp(row.promotion.due_at)}"

    megabytes = rendering.column("MB", lambda row: f"{row.size / 1e6:,.1f}")
    staged_table = rendering.column(
        "table", lambda row: "–" if row.staged_bytes is None else filesizeformat(row.staged_bytes)
    )
    speed = rendering.column(
        "points/s",
        lambda row: "–" if row.points_per_second is None else f"{row.points_per_second:,}",
    )
    fault = rendering.column(
        "error at", lambda row: (error_position(row.error) or "whole file") if row.error else "–"
    )

    @display(description="error")
    def error_text(self, row: Any) -> str:
        if not row.error:
            return "–"
        return row.error if row.may_read_errors else HIDDEN

    @display(description="reasons for rejection")
    def rejected_points(self, row: Import) -> str:
        lines = (
            (reason, f"{count:,}", ": " + "; ".join(positions) if positions else "")
            for reason, count, positions in inspection.rejected_positions(row.tally)
        )
        return format_html_join("", "<div>{}, {}{}</div>", lines) or "–"

    @display(description="job")
    def job(self, row: Any) -> str:
        if row.job is None:
            return "–"
        text: str = f"{row.job.handler} {row.job.pk}"
        if row.may_see_jobs:
            text = rendering.link("tailrace_jobs_job_change", text, row.job.pk)
        return format_html("{}, {}", text, row.job.state)
