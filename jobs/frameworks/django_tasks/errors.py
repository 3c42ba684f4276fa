"""Errors of tasks, and the classes under which their results list them."""

from tailrace.jobs.handler import Cancel, Permanent
from tailrace.jobs.operations.job_result import ResultNotStored
from tailrace.jobs.runtime.reported_errors import class_path
from tailrace.jobs.runtime.states import State


class TaskExited(Exception):
    """The task raised SystemExit, which must not end its worker."""


class NotJson(Permanent):
    """The return value of the task is not JSON. Its effect has happened, so it is not repeated."""


class WorkerLost(Exception):
    """The worker was lost while it ran the task."""


LOST = class_path(WorkerLost)
WITHOUT_ATTEMPT = {
    State.COMPLETED: class_path(ResultNotStored),
    State.CANCELLED: class_path(Cancel),
    State.FAILED: class_path(Permanent),
}
"""The classes of errors that are the reason of a job's state, and not of a failed attempt."""
_LISTED_AS = {
    class_path(TaskExited): class_path(SystemExit),
    class_path(NotJson): class_path(TypeError),
}


def listed_as(error_class: str) -> str:
    """Return the path of the class that the task framework expects for a stored error."""
    return _LISTED_AS.get(error_class, error_class)
