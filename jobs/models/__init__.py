from jobs.models.breaker import Breaker, Bucket
from jobs.models.job import Attempt, Job
from jobs.models.queue import Pulse, Queue, Throughput
from jobs.models.request_key import RequestKey
from jobs.models.schedule import Schedule, Slot
from jobs.models.sweep import SweepRun

__all__ = [
    "Attempt",
    "Breaker",
    "Bucket",
    "Job",
    "Pulse",
    "Queue",
    "RequestKey",
    "Schedule",
    "Slot",
    "SweepRun",
    "Throughput",
]
