"""The admin of records."""

from domains.records import record_admin, source_admin  # noqa: F401
