"""The figures of /metrics, for Prometheus."""

from tailrace.jobs.platform.inspection.metrics.page import current, families

__all__ = ["current", "families"]
