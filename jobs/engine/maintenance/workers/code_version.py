"""The version of the project's code on this machine's disk: a digest of its Python files."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.apps import apps
from django.conf import settings

from tailrace.environment.folders import BASE_DIR, IS_CHECKOUT, PACKAGE_DIR


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """A version of the code. The digest of the files' contents is the same on all machines."""

    digest: str
    changed_at: datetime
    """The latest modification time of a file."""
    here_since: datetime
    """Since when the files are on this machine; copied files may keep their modification times."""


_lock = threading.Lock()
_known: tuple[tuple[float, int, int], CodeVersion] | None = None


def code_version() -> CodeVersion:
    """Return the current version of the files, which are read only if the modification time or the
    size of one has changed."""
    global _known
    with _lock:
        files = sorted(_files())
        stats = [path.stat() for path in files]
        state = (
            max((stat.st_mtime for stat in stats), default=0.0),
            sum(stat.st_size for stat in stats),
            len(stats),
        )
        if _known is None or _known[0] != state:
            here_since = max((stat.st_ctime for stat in stats), default=0.0)
            times = (datetime.fromtimestamp(each, UTC) for each in (state[0], here_since))
            _known = (state, CodeVersion(_digest(files), *times))
        return _known[1]


def _files() -> Iterator[Path]:
    """Yield the Python files of the project, and those of Tailrace as an installed package."""
    base = _base()
    modules = (config.module for config in apps.get_app_configs())
    folders = {Path(folder) for module in modules for folder in getattr(module, "__path__", ())}
    own = {path for path in folders if base in path.parents and "site-packages" not in path.parts}
    own |= {base / name for name in ("config", "db", "environment", "net")}
    if not IS_CHECKOUT:
        own.add(PACKAGE_DIR)
    tops = {path for path in own if not own & set(path.parents)}
    for top in tops:
        yield from top.rglob("*.py")


def _base() -> Path:
    """Return the folder of the project: the setting BASE_DIR if it exists, else Tailrace's own."""
    return Path(getattr(settings, "BASE_DIR", BASE_DIR))


def _digest(files: list[Path]) -> str:
    base = _base()
    digest = hashlib.sha256()
    for path in files:
        folder = base if path.is_relative_to(base) else PACKAGE_DIR
        digest.update(str(path.relative_to(folder)).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]
