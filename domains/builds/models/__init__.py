"""The models of builds."""

from tailrace.domains.builds.models.binary import Binary
from tailrace.domains.builds.models.build_log import BuildLogTail
from tailrace.domains.builds.models.poller import LogPart, Poller
from tailrace.domains.builds.models.project import (
    Package,
    PackageLink,
    Project,
    RoleHolder,
    UnreadChange,
)
from tailrace.domains.builds.models.project_log import ProjectLogEntry
from tailrace.domains.builds.models.watch import TokenHolder, Watch

__all__ = [
    "Binary",
    "BuildLogTail",
    "LogPart",
    "Package",
    "PackageLink",
    "Poller",
    "Project",
    "ProjectLogEntry",
    "RoleHolder",
    "TokenHolder",
    "UnreadChange",
    "Watch",
]
