"""Keep connections that belong to one process."""

import os
from typing import TypeVar

T = TypeVar("T")


def process_cache() -> dict[str, T]:
    """Return a dict that is empty again in a forked child.

    The child keeps the parent's objects unused: to close a connection here would break it there,
    and the threads of a client do not exist here to be joined.
    """
    objects: dict[str, T] = {}
    inherited: list[T] = []

    def after_fork() -> None:
        inherited.extend(objects.values())
        objects.clear()

    os.register_at_fork(after_in_child=after_fork)
    return objects
