"""Events about builds, repositories and their publication."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tailrace.domains.builds.backends import log_tails
from tailrace.domains.builds.event_types.base import Text
from tailrace.domains.builds.event_types.metric import Metric, difference, word
from tailrace.domains.builds.event_types.obs_headers import build_headers
from tailrace.domains.builds.event_types.package import PackageEvent, ProjectEvent
from tailrace.events.publish import Recorded

_WATCHERS = ("project_watcher", "package_watcher", "request_watcher")


class Build(PackageEvent):
    """Package finished building"""

    abstract = True
    family_title = "Builds"
    state: ClassVar[str] = ""

    @classmethod
    def metric(cls, payload: dict[str, Any]) -> Metric:
        """Return the seconds of the build and of the wait before it. OBS's tag `namespace` is left
        out, because only OBS has the list of maintained projects for it."""
        ready, start, end = (payload.get(f"{key}time") for key in ("ready", "start", "end"))
        fields = {
            "duration": difference(end, start),
            "latency": difference(start, ready),
            "total": difference(end, ready),
        }
        tags = {
            "worker": payload.get("workerid"),
            "arch": payload.get("arch"),
            "reason": word(payload.get("reason")),
            "state": cls.state,
            "buildtype": payload.get("buildtype"),
        }
        return Metric("build", fields, tags)

    class Payload(PackageEvent.Payload):
        identity: ClassVar[tuple[str, ...]] = ("project", "package", "repository", "arch")
        repository: Text = None
        arch: Text = None
        release: Text = None
        readytime: Text = None
        srcmd5: Text = None
        rev: Text = None
        reason: Text = None
        bcnt: Text = None
        verifymd5: Text = None
        hostarch: Text = None
        starttime: Text = None
        endtime: Text = None
        workerid: Text = None
        versrel: Text = None
        previouslyfailed: Text = None
        successive_failcount: Text = None
        buildtype: Text = None


class BuildFail(Build):
    """Package failed to build"""

    name = "builds.build_fail"
    raw_type = "BUILD_FAIL"
    bus_key = "package.build_fail"
    state = "fail"
    project_log = True
    receiver_roles = ("maintainer", "bugowner", "reader", *_WATCHERS)
    can_mail = can_web = can_rss = True

    @classmethod
    def obs_headers(cls, payload: dict[str, Any]) -> Mapping[str, str]:
        return build_headers(payload)

    @classmethod
    def mail_contexts(cls, events: Sequence[Recorded]) -> Mapping[int, Mapping[str, Any] | None]:
        """Return the end of each build's log or the reason why it is missing, by event id."""
        return log_tails.contexts(events)


class BuildSuccess(Build):
    """Package succeeded building"""

    name = "builds.build_success"
    raw_type = "BUILD_SUCCESS"
    bus_key = "package.build_success"
    state = "success"
    project_log = True


class BuildUnchanged(Build):
    """Package succeeded building with unchanged result"""

    name = "builds.build_unchanged"
    raw_type = "BUILD_UNCHANGED"
    bus_key = "package.build_unchanged"
    state = "unchanged"


class RepoEvent(ProjectEvent):
    """Something happened to a repository of a project."""

    abstract = True
    family_title = "Repositories"

    class Payload(ProjectEvent.Payload):
        identity: ClassVar[tuple[str, ...]] = ("project", "repo")
        repo: Text = None


class RepoBuildPayload(RepoEvent.Payload):
    arch: Text = None
    buildid: Text = None


class RepoBuildStarted(RepoEvent):
    """Repository (re)started building"""

    name = "builds.repo_build_started"
    raw_type = "REPO_BUILD_STARTED"
    bus_key = "repo.build_started"
    Payload = RepoBuildPayload


class RepoBuildFinished(RepoEvent):
    """Repository finished building"""

    name = "builds.repo_build_finished"
    raw_type = "REPO_BUILD_FINISHED"
    bus_key = "repo.build_finished"
    Payload = RepoBuildPayload


class RepoPublishState(RepoEvent):
    """Publish state of repository changed"""

    name = "builds.repo_publish_state"
    raw_type = "REPO_PUBLISH_STATE"
    bus_key = "repo.publish_state"

    class Payload(RepoEvent.Payload):
        state: Text = None


class RepoPublished(RepoEvent):
    """Repository published"""

    name = "builds.repo_published"
    raw_type = "REPO_PUBLISHED"
    bus_key = "repo.published"

    class Payload(RepoEvent.Payload):
        buildid: Text = None


class ContainerPublished(RepoEvent):
    """Container image published"""

    name = "builds.container_published"
    raw_type = "CONTAINER_PUBLISHED"
    bus_key = "container.published"

    class Payload(RepoPublished.Payload):
        container: Text = None


class Packtrack(RepoEvent):
    """Binary published"""

    name = "builds.packtrack"
    raw_type = "PACKTRACK"
    bus_key = "repo.packtrack"

    class Payload(RepoEvent.Payload):
        identity: ClassVar[tuple[str, ...]] = ("project", "repo", "payload")
        payload: Text = None
