"""released: a repository's binaries, as one release after the other changes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from domains.builds.models import Binary
from domains.builds.models.binary import CONTENT, IDENTITY

BATCH = 1000


@dataclass(frozen=True, slots=True)
class Changes:
    """How many binaries a release added, modified, removed and left as they were."""

    added: int
    modified: int
    obsolete: int
    unchanged: int


@transaction.atomic
def release(
    backend: str, project: str, repository: str, items: Sequence[Mapping[str, Any]], at: datetime
) -> Changes:
    """Make the repository hold exactly `items`, objects of a packtrack payload, as of `at`.

    A binary with other content under the same name ends its row and begins another; one that is
    not there any more becomes obsolete. Released twice, the second changes nothing.
    """
    wanted = {
        identity_of(binary): binary
        for binary in (_binary(backend, project, repository, item, at) for item in items)
    }
    current = Binary.objects.current().filter(
        backend=backend, project=project, repository=repository
    )
    there = {identity_of(binary): binary for binary in current.select_for_update()}
    changed = {
        identity
        for identity in wanted.keys() & there.keys()
        if content_of(wanted[identity]) != content_of(there[identity])
    }
    added = wanted.keys() - there.keys()
    removed = there.keys() - wanted.keys()
    _end("modified_at", at, [there[identity].pk for identity in changed])
    _end("obsolete_at", at, [there[identity].pk for identity in removed])
    for identity in changed:
        wanted[identity].operation = Binary.Operation.MODIFIED
    Binary.objects.bulk_create(
        [binary for identity, binary in wanted.items() if identity in changed | added],
        batch_size=BATCH,
    )
    unchanged = len(wanted) - len(added) - len(changed)
    return Changes(len(added), len(changed), len(removed), unchanged)


def identity_of(binary: Binary) -> tuple[Any, ...]:
    return tuple(getattr(binary, name) for name in IDENTITY)


def content_of(binary: Binary) -> tuple[Any, ...]:
    return tuple(getattr(binary, name) for name in CONTENT)


def _end(column: str, at: datetime, ids: list[int]) -> None:
    for start in range(0, len(ids), BATCH):
        Binary.objects.filter(pk__in=ids[start : start + BATCH]).update(**{column: at})


def _binary(
    backend: str, project: str, repository: str, item: Mapping[str, Any], at: datetime
) -> Binary:
    def text(key: str) -> str:
        value = item.get(key)
        return "" if value is None else str(value).replace("\0", "\ufffd")

    return Binary(
        backend=backend,
        project=project,
        repository=repository,
        name=text("name"),
        epoch=text("epoch"),
        version=text("version"),
        release=text("release"),
        arch=text("binaryarch"),
        medium=text("medium"),
        source_project=text("project"),
        package=text("package"),
        binaryid=text("binaryid"),
        buildtime=_moment(item.get("buildtime")),
        disturl=text("disturl"),
        supportstatus=text("supportstatus"),
        cpeid=text("cpeid"),
        operation=Binary.Operation.ADDED,
        released_at=at,
    )


def _moment(value: Any) -> datetime | None:
    """Return a Unix time as a moment; None for what is none."""
    try:
        return datetime.fromtimestamp(int(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
