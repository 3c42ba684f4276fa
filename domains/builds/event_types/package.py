"""Events about projects, packages and their sources, as reported by the source server."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from tailrace.domains.builds.event_types.base import BuildsEvent, BuildsPayload, Cut, Text
from tailrace.domains.builds.event_types.metric import Metric
from tailrace.domains.builds.event_types.obs_headers import package_headers

_SERVICE_ERRORS = (
    (r"bad link:", "bad_link"),
    (r" 400 remote error:.*.service  No such file or directory", "service_missing"),
    (r" 400 remote error:.*service parameter.*is not defined", "unknown_service_parameter"),
)
"""Patterns of the beginning of an error, and the kind of error that OBS reports in metrics."""


class ProjectEvent(BuildsEvent):
    """Something happened to a project."""

    abstract = True
    family_title = "Projects"

    class Payload(BuildsPayload):
        identity: ClassVar[tuple[str, ...]] = ("project",)
        project: Text = None


class PackageEvent(BuildsEvent):
    """Something happened to a package."""

    abstract = True
    family_title = "Packages"

    class Payload(BuildsPayload):
        identity: ClassVar[tuple[str, ...]] = ("project", "package")
        project: Text = None
        package: Text = None
        sender: Text = None


class CreateProject(ProjectEvent):
    """Project created"""

    name = "builds.create_project"
    raw_type = "SRCSRV_CREATE_PROJECT"
    bus_key = "project.create"

    class Payload(ProjectEvent.Payload):
        sender: Text = None


class UpdateProject(ProjectEvent):
    """Project meta updated"""

    name = "builds.update_project"
    raw_type = "SRCSRV_UPDATE_PROJECT"
    bus_key = "project.update"
    project_log = True
    Payload = CreateProject.Payload


class UpdateProjectConfig(ProjectEvent):
    """Project _config updated"""

    name = "builds.update_project_config"
    raw_type = "SRCSRV_UPDATE_PROJECT_CONFIG"
    bus_key = "project.update_project_conf"
    project_log = True

    class Payload(CreateProject.Payload):
        files: Cut = None
        comment: Cut = None


class DeleteProject(ProjectEvent):
    """Project deleted"""

    name = "builds.delete_project"
    raw_type = "SRCSRV_DELETE_PROJECT"
    bus_key = "project.delete"

    class Payload(ProjectEvent.Payload):
        comment: Cut = None
        requestid: Text = None
        sender: Text = None


class UndeleteProject(ProjectEvent):
    """Project undeleted"""

    name = "builds.undelete_project"
    raw_type = "SRCSRV_UNDELETE_PROJECT"
    bus_key = "project.undelete"

    class Payload(ProjectEvent.Payload):
        comment: Cut = None
        sender: Text = None


class CreatePackage(PackageEvent):
    """Package created"""

    name = "builds.create_package"
    raw_type = "SRCSRV_CREATE_PACKAGE"
    bus_key = "package.create"
    project_log = True


class UpdatePackage(PackageEvent):
    """Package meta data updated"""

    name = "builds.update_package"
    raw_type = "SRCSRV_UPDATE_PACKAGE"
    bus_key = "package.update"
    project_log = True


class DeletePackage(PackageEvent):
    """Package deleted"""

    name = "builds.delete_package"
    raw_type = "SRCSRV_DELETE_PACKAGE"
    bus_key = "package.delete"
    project_log = True

    class Payload(PackageEvent.Payload):
        comment: Cut = None
        requestid: Text = None


class UndeletePackage(PackageEvent):
    """Package undeleted"""

    name = "builds.undelete_package"
    raw_type = "SRCSRV_UNDELETE_PACKAGE"
    bus_key = "package.undelete"
    project_log = True

    class Payload(PackageEvent.Payload):
        comment: Cut = None


class BranchCommand(PackageEvent):
    """Package branched"""

    name = "builds.branch_command"
    bus_key = "package.branch"
    project_log = True

    class Payload(PackageEvent.Payload):
        targetproject: Text = None
        targetpackage: Text = None
        user: Text = None


class Commit(PackageEvent):
    """New revision of a package committed"""

    name = "builds.commit"
    raw_type = "SRCSRV_COMMIT"
    bus_key = "package.commit"
    project_log = True

    class Payload(PackageEvent.Payload):
        comment: Cut = None
        user: Text = None
        files: Cut = None
        rev: Text = None
        requestid: Text = None


class Upload(PackageEvent):
    """Package sources uploaded"""

    name = "builds.upload"
    raw_type = "SRCSRV_UPLOAD"
    bus_key = "package.upload"

    class Payload(PackageEvent.Payload):
        comment: Cut = None
        filename: Cut = None
        requestid: Text = None
        target: Text = None
        user: Text = None
        meta: Text = None


class VersionChange(PackageEvent):
    """Package changed its version"""

    name = "builds.version_change"
    raw_type = "SRCSRV_VERSION_CHANGE"
    bus_key = "package.version_change"
    project_log = True

    class Payload(PackageEvent.Payload):
        comment: Cut = None
        requestid: Text = None
        files: Cut = None
        rev: Text = None
        newversion: Text = None
        user: Text = None
        oldversion: Text = None


class ServiceFail(PackageEvent):
    """Package source service failed"""

    name = "builds.service_fail"
    raw_type = "SRCSRV_SERVICE_FAIL"
    bus_key = "package.service_fail"
    project_log = True
    receiver_roles = ("maintainer", "bugowner")
    can_mail = True

    @classmethod
    def obs_headers(cls, payload: dict[str, Any]) -> Mapping[str, str]:
        return package_headers(payload)

    @classmethod
    def metric(cls, payload: dict[str, Any]) -> Metric:
        text = str(payload.get("error") or "")
        kinds = (kind for beginning, kind in _SERVICE_ERRORS if re.match(beginning, text))
        return Metric("service", {"value": 1}, {"status": "fail", "error": next(kinds, "unknown")})

    class Payload(PackageEvent.Payload):
        comment: Cut = None
        error: Cut = None
        rev: Text = None
        user: Text = None
        requestid: Text = None


class ServiceSuccess(PackageEvent):
    """Package source service succeeded"""

    name = "builds.service_success"
    raw_type = "SRCSRV_SERVICE_SUCCESS"
    bus_key = "package.service_success"
    project_log = True
    receiver_roles = ("maintainer", "bugowner")

    @classmethod
    def metric(cls, payload: dict[str, Any]) -> Metric:
        return Metric("service", {"value": 1}, {"status": "success"})

    class Payload(PackageEvent.Payload):
        comment: Cut = None
        rev: Text = None
        user: Text = None
        requestid: Text = None


class UpstreamPackageVersionChanged(BuildsEvent):
    """Version of the upstream package has changed

    Newer revisions of OBS have this event (app/models/event/upstream_package_version_changed.rb)
    and get it from release-monitoring.org. It is not in the backend's log.
    """

    name = "builds.upstream_package_version_changed"
    bus_key = "package.upstream_version_changed"
    receiver_roles = ("develpackage_or_package_maintainer",)
    can_mail = can_web = can_rss = True

    class Payload(BuildsPayload):
        identity: ClassVar[tuple[str, ...]] = ("project", "package", "upstream_version")
        upstream_version: Text = None
        project: Text = None
        package: Text = None
