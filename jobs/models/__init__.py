from jobs.models.breaker import Breaker, Bucket
from jobs.models.failure import FailureGroup, FailureHour
from jobs.models.job import Attempt, Job
from jobs.models.log_lines import LogLines
from jobs.models.queue import Pulse, Queue, QueueActivity, Throughput, Total
from jobs.models.queue_period import QueuePeriod
from jobs.models.replay import Replay, ReplayedJob
from jobs.models.request_key import RequestKey
from jobs.models.schedule import Schedule, Slot
from jobs.models.search_value import SearchValue
from jobs.models.sweep import SweepRun

__all__ = [
    "Attempt",
    "Breaker",
    "Bucket",
    "FailureGroup",
    "FailureHour",
    "Job",
    "LogLines",
    "Pulse",
    "Queue",
    "QueueActivity",
    "QueuePeriod",
    "Replay",
    "ReplayedJob",
    "RequestKey",
    "Schedule",
    "SearchValue",
    "Slot",
    "SweepRun",
    "Throughput",
    "Total",
]
