"""The figures of /metrics, for Prometheus."""

from jobs.inspection.metrics.page import current, families

__all__ = ["current", "families"]
