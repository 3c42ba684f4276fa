"""Files that only the user who runs Tailrace may read: the secrets of setup, and all of var/."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

UMASK = 0o077
PASS_THROUGH = 0o011


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, so that other users cannot read them."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        each.chmod(0o700 | _pass_through_mode())


def read_or_create(path: Path, new: str) -> str:
    """Return the content of a private file; create it with the content `new` if it is missing.

    If several processes create the file at once, all of them return the same content.
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
    """Remove the permissions of other users from var and from the logs of the engines.

    The data folders of the engines are already private and may belong to another user.
    """
    for folder, folders, files in os.walk(var_dir):
        if engines.parent == Path(folder):
            folders[:] = [name for name in folders if name != engines.name]
        _tighten(Path(folder), kept=_pass_through_mode() if Path(folder) == var_dir else 0)
        for name in files:
            _tighten(Path(folder, name))
    if engines.exists():
        _tighten(engines, kept=_pass_through_mode())
        for path in (*engines.glob("*.log"), *engines.glob("*.lock")):
            _tighten(path)


def _tighten(path: Path, kept: int = 0) -> None:
    with suppress(FileNotFoundError):  # a temporary file of a running process
        status = path.lstat()
        if status.st_mode & UMASK & ~kept and not path.is_symlink():
            path.chmod(status.st_mode & (0o700 | kept))


def _pass_through_mode() -> int:
    """Return the permissions that other users keep for var itself: engines of root run as another
    user, who must reach their files in var."""
    return PASS_THROUGH if os.geteuid() == 0 else 0
