import shutil
from pathlib import Path

from django.conf import settings

from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts

LEAST_BYTES = 1024**3
LEAST_SHARE = 0.02


class DiskFull(Check):
    """The disk with the files of VAR_DIR is nearly full (an embedded database is there, too); in
    another project, the disk with this process's folder."""

    code = "disk_full"
    rank = 12

    def causes(self, facts: Facts) -> list[Cause]:
        path = Path(getattr(settings, "VAR_DIR", Path.cwd()))
        disk = shutil.disk_usage(next(each for each in (path, *path.parents) if each.exists()))
        if disk.free >= min(LEAST_BYTES, LEAST_SHARE * disk.total):
            return []
        sizes = f"{disk.free / 1024**2:,.0f} MB of {disk.total / 1024**3:,.0f} GB are free"
        words = f"The disk of this web server is nearly full: {sizes}."
        return [Cause(words, advice="Free some space, or move files to another disk.")]
