"""Limit the memory of a process while it reads a file that a user uploaded."""

import contextlib
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

EXTRA = 1_000_000_000
"""Bytes of address space that the process may take in addition. Reading takes less than 150 MB of
memory, but allocators and threads reserve address space."""
_STATM = Path("/proc/self/statm")
_lock = threading.Lock()
_readers: list[tuple[int, int]] = []
"""For each file that is being read in this process: the limits before it."""


@contextlib.contextmanager
def limited_memory(extra: int = EXTRA) -> Iterator[None]:
    """Let allocations in this process raise MemoryError beyond `extra` bytes, until the last block
    of this kind ends. Other systems than Linux have no such limit."""
    _begin(extra)
    try:
        yield
    finally:
        _end()


def _begin(extra: int) -> None:
    with _lock:
        before = resource.getrlimit(resource.RLIMIT_AS)
        if not _readers and _STATM.exists():
            _set(_size() + extra, before[1])
        _readers.append(_readers[0] if _readers else before)


def _end() -> None:
    with _lock:
        before = _readers.pop()
        if not _readers:
            _set(*before)


def _size() -> int:
    """Return the address space of this process in bytes."""
    return int(_STATM.read_text().split()[0]) * resource.getpagesize()


def _set(soft: int, hard: int) -> None:
    if hard != resource.RLIM_INFINITY and (soft == resource.RLIM_INFINITY or soft > hard):
        soft = hard
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
