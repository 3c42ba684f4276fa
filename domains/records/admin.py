"""The admin pages of records."""

from tailrace.domains.records.platform.admin import record_admin, source_admin  # noqa: F401
