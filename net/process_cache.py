"""Cache objects that belong to one process, such as connections."""

import os
from typing import TypeVar

T = TypeVar("T")


def process_cache() -> dict[str, T]:
    """Return a new dict that becomes empty in a forked child process. The child keeps the parent's
    objects alive but unused: closing a connection there would break it in the parent, and the
    threads of a client do not exist there."""
    objects: dict[str, T] = {}
    inherited: list[T] = []

    def after_fork() -> None:
        inherited.extend(objects.values())
        objects.clear()

    os.register_at_fork(after_in_child=after_fork)
    return objects
