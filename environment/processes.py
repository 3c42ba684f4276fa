"""What an app adds to `make run`: `PROCESSES` in its `processes.py`, and lines of where to look."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Process:
    """A process that `make run` starts beside web, worker, beat and Flower."""

    name: str
    command: str = ""
    """A line for the shell; it may use `port` and other variables: `$SAMPLE_BACKEND_PORT`. Empty:
    there is no process, only what is prepared."""
    runs: Callable[[], bool] = lambda: True
    """Whether it runs with the present settings."""
    port: str = ""
    """The setting with its port on 127.0.0.1, which must be free."""
    prepare: Callable[[], str] = str
    """Called once before the processes start; returns what to print, or nothing."""
    variables: Callable[[], dict[str, str]] = dict
    """Returns environment variables that all processes get while this one runs."""
