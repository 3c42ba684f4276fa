"""The admin of records."""

from domains.records import source_admin  # noqa: F401
