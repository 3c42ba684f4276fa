"""The admin of jobs, queues and schedules; and of events, which are shown with their jobs."""

from tailrace.jobs.admin import breakers, events, failures, jobs, queues, schedules, sweeps

__all__ = ["breakers", "events", "failures", "jobs", "queues", "schedules", "sweeps"]
