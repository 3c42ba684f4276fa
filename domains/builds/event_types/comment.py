"""Events about comments on projects, packages, requests and reports."""

from collections.abc import Mapping
from typing import Any

from tailrace.domains.builds.event_types.base import BuildsEvent, BuildsPayload, Number, Text
from tailrace.domains.builds.event_types.metric import Metric
from tailrace.domains.builds.event_types.obs_headers import commenter_headers
from tailrace.domains.builds.event_types.request import Request, RequestStatechange


class CommentPayload(BuildsPayload):
    id: Number = None
    commenters: list[Any] | None = None
    commenter: Text = None
    comment_body: Text = None
    comment_title: Text = None
    when: Text = None


class CommentHeaders:
    """Adds the header with the commenter to the mails about a comment."""

    @classmethod
    def obs_headers(cls, payload: dict[str, Any]) -> Mapping[str, str]:
        return {**super().obs_headers(payload), **commenter_headers(payload)}  # type: ignore[misc]


class CommentForProject(CommentHeaders, BuildsEvent):
    """New comment for project created"""

    name = "builds.comment_for_project"
    bus_key = "project.comment"
    project_log = True
    receiver_roles = ("commenter", "maintainer", "bugowner", "project_watcher")
    can_mail = can_web = can_rss = True

    class Payload(CommentPayload):
        identity = ("project",)
        project: Text = None


class CommentForPackage(CommentHeaders, BuildsEvent):
    """New comment for package created"""

    name = "builds.comment_for_package"
    bus_key = "package.comment"
    project_log = True
    receiver_roles = ("commenter", "maintainer", "bugowner", "project_watcher", "package_watcher")
    can_mail = can_web = can_rss = True

    class Payload(CommentPayload):
        identity = ("project", "package")
        project: Text = None
        package: Text = None
        sender: Text = None


class CommentForReport(CommentHeaders, BuildsEvent):
    """New comment for report created"""

    name = "builds.comment_for_report"
    bus_key = "report.comment"
    receiver_roles = ("commenter", "moderator", "reporter")
    can_mail = can_web = True
    subject_from = ("report", "report_id")
    page_from = ("reports", "report_id")

    class Payload(CommentPayload):
        identity = ("report_id",)
        report_id: Number = None
        reporter: Text = None
        reportable_id: Number = None
        reportable_type: Text = None
        reason: Text = None
        category: Text = None


class CommentForRequest(CommentHeaders, Request):
    """New comment for request created"""

    name = "builds.comment_for_request"
    bus_key = "request.comment"
    receiver_roles = ("commenter", *RequestStatechange.receiver_roles)
    can_mail = can_web = can_rss = True
    actor_keys = ("commenter", "who")
    """`author` is left out: it is the author of the request."""

    @classmethod
    def metric(cls, payload: dict[str, Any]) -> Metric:
        on_a_line = payload.get("diff_file_index") not in (None, "")
        return Metric("comment", {"value": 1}, {"diff_ref": on_a_line})

    class Payload(Request.Payload):
        commenters: list[Any] | None = None
        commenter: Text = None
        comment_body: Text = None
        comment_title: Text = None
        request_number: Number = None
        diff_file_index: Number = None
        diff_line_number: Number = None
