"""What operators see and do. The admin of events lives here, since events know nothing of jobs."""

from jobs.admin import breakers, events, jobs, queues, schedules, sweeps

__all__ = ["breakers", "events", "jobs", "queues", "schedules", "sweeps"]
