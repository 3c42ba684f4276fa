"""What operators do with jobs, queues and schedules; each operation returns an OperationResult."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class OperationResult:
    """The result of an operation for each of its jobs."""

    changed: list[int] = field(default_factory=list)
    stop_requested: list[int] = field(default_factory=list)
    """Running jobs, which stop when their handler checks for cancellation."""
    refused: dict[int, str] = field(default_factory=dict)
    """The reason for each job that was not changed."""
