"""Store the binaries that a repository contains after each of its releases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db import transaction

from tailrace.domains.builds.backends.unix_time import unix_time
from tailrace.domains.builds.models import Binary
from tailrace.domains.builds.models.binary import CONTENT, IDENTITY

BATCH_SIZE = 1000
SAME_NAMES = (
    "name epoch version release medium package binaryid disturl supportstatus cpeid".split()
)
"""Fields of a binary that have the same names in the payload."""

identity_of = attrgetter(*IDENTITY)
content_of = attrgetter(*CONTENT)


@dataclass(frozen=True, slots=True)
class Changes:
    """How many binaries a release added, modified, removed and left unchanged."""

    added: int
    modified: int
    obsolete: int
    unchanged: int


@transaction.atomic
def release(
    backend: str, project: str, repository: str, items: Sequence[Mapping[str, Any]], at: datetime
) -> Changes:
    """Make the current binaries of the repository equal to `items`, the objects of a packtrack
    payload. `at` is the time of the release.

    For a binary with changed content, the old row gets `modified_at` and a new row is added. The
    row of a removed binary gets `obsolete_at`. Storing the same release twice changes nothing.
    """
    place = {"backend": backend, "project": project, "repository": repository}
    binaries = (_binary(item, released_at=at, **place) for item in items)
    new = {identity_of(binary): binary for binary in binaries}
    current = Binary.objects.current().filter(**place)
    old = {identity_of(binary): binary for binary in current.select_for_update()}
    changed = {
        identity
        for identity in new.keys() & old.keys()
        if content_of(new[identity]) != content_of(old[identity])
    }
    added = new.keys() - old.keys()
    removed = old.keys() - new.keys()
    _end("modified_at", at, [old[identity].pk for identity in changed])
    _end("obsolete_at", at, [old[identity].pk for identity in removed])
    for identity in changed:
        new[identity].operation = Binary.Operation.MODIFIED
    Binary.objects.bulk_create(
        [binary for identity, binary in new.items() if identity in changed | added],
        batch_size=BATCH_SIZE,
    )
    unchanged = len(new) - len(added) - len(changed)
    return Changes(len(added), len(changed), len(removed), unchanged)


def _end(column: str, at: datetime, ids: list[int]) -> None:
    for start in range(0, len(ids), BATCH_SIZE):
        Binary.objects.filter(pk__in=ids[start : start + BATCH_SIZE]).update(**{column: at})


def _binary(item: Mapping[str, Any], **columns: Any) -> Binary:
    def text(key: str) -> str:
        value = item.get(key)
        return "" if value is None else str(value).replace("\0", "\ufffd")

    return Binary(
        arch=text("binaryarch"),
        source_project=text("project"),
        buildtime=unix_time(item.get("buildtime")),
        **{key: text(key) for key in SAME_NAMES},
        operation=Binary.Operation.ADDED,
        **columns,
    )
