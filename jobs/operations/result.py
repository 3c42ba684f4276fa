from dataclasses import dataclass, field


@dataclass(slots=True)
class OperationResult:
    """What an operation did with each of the jobs it was given."""

    changed: list[int] = field(default_factory=list)
    stop_requested: list[int] = field(default_factory=list)
    """Running jobs, which stop when their handler checks for it."""
    refused: dict[int, str] = field(default_factory=dict)
    """Why the other jobs were not changed."""
