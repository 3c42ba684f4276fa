"""The admin pages of records."""

from tailrace.domains.records import record_admin, source_admin  # noqa: F401
