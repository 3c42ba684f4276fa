"""The processes that an app adds to `make run`: `PROCESSES` in its `processes.py`. `addresses()`
there returns the URLs to print, and `accounts()` the users to sign in as, by their titles."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Process:
    """A process that `make run` starts beside web, worker, beat and Flower."""

    name: str
    command: str = ""
    """A shell command; it may use `port` and other environment variables, as in
    `$SAMPLE_BACKEND_PORT`. If it is empty, only `prepare` is run."""
    runs: Callable[[], bool] = lambda: True
    """Returns whether the current settings need this process."""
    port: str = ""
    """The name of the setting with its port on 127.0.0.1. The port must be free."""
    prepare: Callable[[], str] = str
    """Called once before the processes start; returns a text to print, or an empty string."""
    variables: Callable[[], dict[str, str]] = dict
    """Returns environment variables that are set for all processes if this process runs."""
