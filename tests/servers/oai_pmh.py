"""A repository that speaks OAI-PMH, as `make run` has it, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tailrace.samples.records.repository import Repository
from tests.servers.web import serving

__all__ = ["Repository", "oai_repository"]


@contextmanager
def oai_repository(**options: Any) -> Iterator[Repository]:
    """Run the repository until the block ends."""
    repository = Repository(**options)
    with serving(repository.respond) as server:
        repository.url = f"{server.url}/oai"
        yield repository
