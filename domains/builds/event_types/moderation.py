"""Events about reported content, the decisions of moderators, and appeals."""

from tailrace.domains.builds.event_types.base import BuildsEvent, BuildsPayload, Number, Text


class Report(BuildsEvent):
    """Report for inappropriate content created"""

    name = "builds.report"
    receiver_roles = ("moderator",)
    can_mail = True
    actor_keys = ("reporter",)
    subject_from = ("report", "id")
    page_from = ("reports", "id")

    class Payload(BuildsPayload):
        identity = ("id",)
        id: Number = None
        reporter: Text = None
        reportable_id: Number = None
        reportable_type: Text = None
        reason: Text = None
        category: Text = None


class ReportForComment(Report):
    """Report for a comment created"""

    name = "builds.report_for_comment"
    can_web = True

    class Payload(Report.Payload):
        commentable_type: Text = None
        bs_request_number: Number = None
        bs_request_action_id: Number = None
        project_name: Text = None
        package_name: Text = None
        commenter: Text = None


class ReportForPackage(Report):
    """Report for a package created"""

    name = "builds.report_for_package"
    can_web = True

    class Payload(Report.Payload):
        package_name: Text = None
        project_name: Text = None


class ReportForProject(Report):
    """Report for a project created"""

    name = "builds.report_for_project"
    can_web = True

    class Payload(Report.Payload):
        project_name: Text = None


class ReportForRequest(Report):
    """Report for a request created"""

    name = "builds.report_for_request"
    can_web = True

    class Payload(Report.Payload):
        bs_request_number: Number = None


class ReportForUser(Report):
    """Report for a user created"""

    name = "builds.report_for_user"
    can_web = True

    class Payload(Report.Payload):
        accused: Text = None


class Decision(BuildsEvent):
    """Reported content decided"""

    abstract = True
    family_title = "Decisions of moderators"
    receiver_roles = ("offender", "reporter")
    can_mail = True
    subject_from = ("decision", "id")
    page_from = ("reports", "report_last_id")

    class Payload(BuildsPayload):
        identity = ("id",)
        id: Number = None
        reason: Text = None
        moderator_id: Number = None
        report_last_id: Number = None
        reportable_type: Text = None


class ClearedDecision(Decision):
    """Reported content cleared"""

    name = "builds.cleared_decision"
    can_web = True


class FavoredDecision(Decision):
    """Reported content favored"""

    name = "builds.favored_decision"
    can_web = True


class AppealCreated(BuildsEvent):
    """A user appealed the decision of a moderator"""

    name = "builds.appeal_created"
    receiver_roles = ("moderator",)
    can_mail = can_web = can_rss = True
    subject_from = ("appeal", "id")
    page_from = ("appeals", "id")

    class Payload(BuildsPayload):
        identity = ("id",)
        id: Number = None
        appellant_id: Number = None
        decision_id: Number = None
        reason: Text = None
        report_last_id: Number = None
        reportable_type: Text = None
