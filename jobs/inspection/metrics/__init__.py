"""The figures of /metrics, for Prometheus."""

from tailrace.jobs.inspection.metrics.page import current, families

__all__ = ["current", "families"]
