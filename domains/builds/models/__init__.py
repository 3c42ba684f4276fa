"""The models of builds."""

from domains.builds.models.binary import Binary
from domains.builds.models.build_log import BuildLogTail
from domains.builds.models.poller import LogPart, Poller
from domains.builds.models.project import (
    Package,
    PackageLink,
    Project,
    RoleHolder,
    UnreadChange,
)
from domains.builds.models.project_log import ProjectLogEntry
from domains.builds.models.watch import TokenHolder, Watch

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
