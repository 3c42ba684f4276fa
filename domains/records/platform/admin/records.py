"""The admin pages of depositions and records, which are read-only."""

from django.contrib import admin

from tailrace.domains.records.models import Deposition, Record
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin

StateFilter = filters.column_filter("state", lambda: Deposition.State.choices)
COLOURS = {
    "submitted": "info",
    "valid": "warning",
    "approved": "info",
    "published": "success",
    "invalid": "danger",
    "rejected": "danger",
}


@admin.register(Deposition)
class DepositionAdmin(filters.SearchById, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("id", "identifier", "source", "submitted_by", "shown_state", "submitted")
    list_select_related = ("source", "submitted_by")
    list_filter = (StateFilter,)
    submitted = rendering.time_column("submitted_at")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("identifier", "shown_state"),
                    ("source", "source_identifier"),
                    ("submitted_by", "submitted"),
                    "reason",
                    "problem_list",
                )
            },
        ),
        ("Metadata", {"fields": ("content",)}),
    )

    shown_state = rendering.column("state", lambda row: row.state, label=COLOURS)
    problem_list = rendering.column(
        "problems", lambda row: rendering.json_block(row.problems) if row.problems else "–"
    )
    content = rendering.column("metadata", lambda row: rendering.json_block(row.metadata))


@admin.register(Record)
class RecordAdmin(filters.SearchById, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("id", "title", "version", "access", "is_deleted", "published")
    published = rendering.time_column("published_at")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "title",
                    ("identifier", "version"),
                    ("owner", "access", "language"),
                    ("published", "is_deleted"),
                    "description",
                    ("creators", "keywords"),
                )
            },
        ),
    )
