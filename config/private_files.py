"""Files that only the user who runs Tailrace may read: the secrets of setup, and all in var/."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

UMASK = 0o077
OTHERS = 0o077
PASS_THROUGH = 0o011


def make_folder(folder: Path) -> None:
    """Create a folder that others cannot read, if it is missing; its parents, too."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        each.chmod(0o700 | _kept())


def read_or_create(path: Path, new: str) -> str:
    """Return the content of a private file; create it with the content `new` if it is missing.

    Of processes that create it at once one wins, and the others read what it has written.
    """
    make_folder(path.parent)
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.") as file:
            file.write(new)
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)
    return path.read_text().strip()


def tighten(var_dir: Path, engines: Path) -> None:
    """Take the permissions of others from var and from the logs in the folder of the engines.

    What an engine keeps itself is private already and may belong to its own user.
    """
    for place, folders, files in os.walk(var_dir):
        if engines.parent == Path(place):
            folders[:] = [name for name in folders if name != engines.name]
        _tighten(Path(place), kept=_kept() if Path(place) == var_dir else 0)
        for name in files:
            _tighten(Path(place, name))
    if engines.exists():
        _tighten(engines, kept=_kept())
        for path in (*engines.glob("*.log"), *engines.glob("*.lock")):
            _tighten(path)


def _tighten(path: Path, kept: int = 0) -> None:
    with suppress(FileNotFoundError):  # a temporary file of a running process
        status = path.lstat()
        if status.st_mode & OTHERS & ~kept and not path.is_symlink():
            path.chmod(status.st_mode & (0o700 | kept))


def _kept() -> int:
    """Return what others may do in var itself: pass through to the engines' files, if those run as
    another user, because root must not run them."""
    return PASS_THROUGH if os.geteuid() == 0 else 0
