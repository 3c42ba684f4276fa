from tailrace.jobs.models.breaker import Breaker, Bucket
from tailrace.jobs.models.celery_task import CeleryTask
from tailrace.jobs.models.failure import FailureGroup, FailureHour
from tailrace.jobs.models.flow import Dependency, Flow, Need
from tailrace.jobs.models.job import Attempt, Job
from tailrace.jobs.models.log_lines import LogLines
from tailrace.jobs.models.queue import Pulse, Queue, QueueActivity, Throughput, Total
from tailrace.jobs.models.queue_period import QueuePeriod
from tailrace.jobs.models.replay import Replay, ReplayedJob
from tailrace.jobs.models.request_key import RequestKey
from tailrace.jobs.models.schedule import Schedule, Slot
from tailrace.jobs.models.search_value import SearchValue
from tailrace.jobs.models.sweep import SweepRun

__all__ = [
    "Attempt", "Breaker", "Bucket", "CeleryTask", "Dependency", "FailureGroup", "FailureHour",
    "Flow", "Job", "LogLines", "Need", "Pulse", "Queue", "QueueActivity", "QueuePeriod", "Replay",
    "ReplayedJob", "RequestKey", "Schedule", "SearchValue", "Slot", "SweepRun", "Throughput",
    "Total",
]  # fmt: skip
