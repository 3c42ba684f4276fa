"""The models of builds."""

from domains.builds.models.binary import Binary
from domains.builds.models.poller import Poller
from domains.builds.models.project import Package, PackageLink, Project, RoleHolder
from domains.builds.models.project_log import ProjectLogEntry
from domains.builds.models.watch import TokenHolder, Watch

__all__ = [
    "Binary",
    "Package",
    "PackageLink",
    "Poller",
    "Project",
    "ProjectLogEntry",
    "RoleHolder",
    "TokenHolder",
    "Watch",
]
