"""Events about group membership, roles and assignments."""

from tailrace.domains.builds.event_types.base import BuildsEvent, BuildsPayload, Number, Text


class Group(BuildsEvent):
    """Members of a group changed"""

    abstract = True
    family_title = "Members of groups"
    receiver_roles = ("member",)
    subject_from = ("group", "group")

    class Payload(BuildsPayload):
        identity = ("group", "member")
        group: Text = None
        member: Text = None
        who: Text = None


class AddedUserToGroup(Group):
    """Added member to group"""

    name = "builds.added_user_to_group"
    can_mail = can_web = True


class RemovedUserFromGroup(Group):
    """Removed member from group"""

    name = "builds.removed_user_from_group"
    can_mail = can_web = True


class Relationship(BuildsEvent):
    """Somebody's role in a project or package changed"""

    abstract = True
    family_title = "Roles in projects and packages"
    actor_keys = ("who",)
    """`user` is left out: it is the user that got or lost the role."""

    class Payload(BuildsPayload):
        identity = ("project",)
        description: Text = None
        who: Text = None
        user: Text = None
        group: Text = None
        project: Text = None
        package: Text = None
        role: Text = None
        notifiable_id: Number = None


class RelationshipCreate(Relationship):
    """Relationship created"""

    name = "builds.relationship_create"
    bus_key = "relationship.create"
    receiver_roles = ("any_role",)
    can_mail = can_web = can_rss = True


class RelationshipDelete(Relationship):
    """Relationship deleted"""

    name = "builds.relationship_delete"
    bus_key = "relationship.delete"
    receiver_roles = ("any_role",)
    can_mail = can_web = can_rss = True


class Assignment(BuildsEvent):
    """Changed of assignment on a package"""

    name = "builds.assignment"
    receiver_roles = ("assignee", "maintainer")
    can_mail = True

    class Payload(BuildsPayload):
        identity = ("project", "package", "assignee")
        id: Number = None
        who: Text = None
        assignee: Text = None
        project: Text = None
        package: Text = None


class AssignmentCreate(Assignment):
    """Assigned a user to a package"""

    name = "builds.assignment_create"
    can_web = can_rss = True


class AssignmentDelete(Assignment):
    """Unassigned a user from a package."""

    name = "builds.assignment_delete"
    can_web = can_rss = True
