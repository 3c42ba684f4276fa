import shutil
from pathlib import Path

from django.conf import settings

from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts

LEAST_BYTES = 1024**3
LEAST_SHARE = 0.02


class DiskFull(Check):
    """The disk with the files of VAR_DIR is nearly full (an embedded database is there, too)."""

    code = "disk_full"
    rank = 90

    def causes(self, facts: Facts) -> list[Cause]:
        disk = shutil.disk_usage(_existing(Path(settings.VAR_DIR)))
        if disk.free >= min(LEAST_BYTES, LEAST_SHARE * disk.total):
            return []
        words = f"{disk.free / 1024**2:,.0f} MB of {disk.total / 1024**3:,.0f} GB are free"
        return [
            Cause(
                f"The disk of this web server is nearly full: {words}.",
                advice="Free some space, or move files to another disk.",
            )
        ]


def _existing(path: Path) -> Path:
    """Return the path if it exists, else its nearest parent that exists."""
    return next(each for each in (path, *path.parents) if each.exists())
