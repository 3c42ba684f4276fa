"""Events about requests and their reviews."""

from collections.abc import Mapping
from typing import Any

from tailrace.domains.builds.event_types.base import BuildsEvent, BuildsPayload, Cut, Number, Text
from tailrace.domains.builds.event_types.metric import Metric
from tailrace.domains.builds.event_types.obs_headers import request_headers

_MAINTAINERS = ("source_maintainer", "target_maintainer")
_WATCHERS = (
    "source_project_watcher",
    "target_project_watcher",
    "source_package_watcher",
    "target_package_watcher",
)


class Request(BuildsEvent):
    """Request updated"""

    abstract = True
    family_title = "Requests and reviews"
    subject_from = ("request", "number")
    searchable = ("number",)

    @classmethod
    def obs_headers(cls, payload: dict[str, Any]) -> Mapping[str, str]:
        return request_headers(payload)

    class Payload(BuildsPayload):
        identity = ("number",)
        author: Text = None
        comment: Cut = None
        description: Text = None
        id: Number = None
        number: Number = None
        actions: list[dict[str, Any]] | None = None
        state: Text = None
        oldstate: Text = None
        when: Text = None
        who: Text = None
        namespace: Text = None


class RequestCreate(Request):
    """Request created"""

    name = "builds.request_create"
    bus_key = "request.create"
    receiver_roles = (*_MAINTAINERS, *_WATCHERS)
    can_mail = can_web = can_rss = True

    @classmethod
    def metric(cls, payload: dict[str, Any]) -> Metric:
        return Metric(cls.bus_key, {"number": payload.get("number")}, {})


class RequestChange(Request):
    """Request XML updated (admin only)"""

    name = "builds.request_change"
    bus_key = "request.change"


class RequestDelete(Request):
    """Request deleted (admin only)"""

    name = "builds.request_delete"
    bus_key = "request.delete"


class RequestStatechange(Request):
    """Request state changed"""

    name = "builds.request_statechange"
    bus_key = "request.state_change"
    receiver_roles = (*_MAINTAINERS, "creator", "reviewer", *_WATCHERS, "request_watcher")
    can_mail = can_web = can_rss = True

    @classmethod
    def metric(cls, payload: dict[str, Any]) -> Metric:
        fields = {key: payload.get(key) for key in ("number", "duration")}
        tags = {key: payload.get(key) for key in ("oldstate", "state", "namespace")}
        return Metric(cls.bus_key, fields, tags)

    class Payload(Request.Payload):
        duration: Number = None


class RequestReviewsDone(RequestStatechange):
    """Request reviews are all done"""

    name = "builds.request_reviews_done"
    bus_key = "request.reviews_done"
    can_web = can_rss = False


class ReviewPayload(Request.Payload):
    reviewers: list[Any] | None = None
    by_user: Text = None
    by_group: Text = None
    by_project: Text = None
    by_package: Text = None


class ReviewChanged(Request):
    """Request reviewed"""

    name = "builds.review_changed"
    bus_key = "request.review_changed"
    receiver_roles = (*_MAINTAINERS, "creator", "source_project_watcher", "target_project_watcher")
    Payload = ReviewPayload


class ReviewWanted(Request):
    """Review created"""

    name = "builds.review_wanted"
    bus_key = "request.review_wanted"
    receiver_roles = ("reviewer",)
    can_mail = can_web = can_rss = True
    Payload = ReviewPayload
