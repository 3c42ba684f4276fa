"""The figures of /metrics, for Prometheus."""

from tailrace.jobs.platform.inspection.metrics.page import current

__all__ = ["current"]
