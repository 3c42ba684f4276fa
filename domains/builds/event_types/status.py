"""Events about status checks and workflow runs."""

from tailrace.domains.builds.event_types.base import BuildsEvent, BuildsPayload, Number, Text


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
    subject_from = ("request", "number")

    class Payload(StatusCheck.Payload):
        identity = ("number",)
        number: Number = None


class WorkflowRunFail(BuildsEvent):
    """Workflow run failed"""

    name = "builds.workflow_run_fail"
    receiver_roles = ("token_executor", "token_member")
    can_mail = can_web = True
    subject_from = ("workflow_run", "id")
    page_from = ("my/tokens", "token_id")

    class Payload(BuildsPayload):
        identity = ("id",)
        id: Number = None
        token_id: Number = None
        hook_event: Text = None
        summary: Text = None
        repository_full_name: Text = None
