"""Events about checks that others report, and about workflow runs."""

from typing import Any

from domains.builds.event_types.base import BuildsEvent, BuildsPayload, Number, Text, numbered


class StatusCheck(BuildsEvent):
    """Status check created"""

    abstract = True

    class Payload(BuildsPayload):
        who: Text = None
        name: Text = None
        short_description: Text = None
        state: Text = None
        url: Text = None


class StatusCheckForBuild(StatusCheck):
    """Status check for finished repository created"""

    name = "builds.status_check_for_build"
    bus_key = "repo.status_report"

    class Payload(StatusCheck.Payload):
        identity = ("project", "repo")
        project: Text = None
        repo: Text = None
        arch: Text = None
        buildid: Text = None


class StatusCheckForPublished(StatusCheck):
    """Status check for published repository created"""

    name = "builds.status_check_for_published"
    bus_key = "published.status_report"

    class Payload(StatusCheck.Payload):
        identity = ("project", "repo")
        project: Text = None
        repo: Text = None
        buildid: Text = None


class StatusCheckForRequest(StatusCheck):
    """Status check for a request created"""

    name = "builds.status_check_for_request"
    bus_key = "request.status_report"

    class Payload(StatusCheck.Payload):
        identity = ("number",)
        number: Number = None

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `request/42`."""
        return numbered("request", payload.get("number"))


class WorkflowRunFail(BuildsEvent):
    """Workflow run failed"""

    name = "builds.workflow_run_fail"
    receiver_roles = ("token_executor", "token_member")
    can_mail = can_web = True

    class Payload(BuildsPayload):
        identity = ("id",)
        id: Number = None
        token_id: Number = None
        hook_event: Text = None
        summary: Text = None
        repository_full_name: Text = None

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `workflow_run/7`."""
        return numbered("workflow_run", payload.get("id"))
