"""Record changes of users, groups and permissions in the security log. Passwords and flags are
always recorded; accounts, groups and permissions only if a request changes them, not a command or a
shell. Changes that bypass Django's signals are not: `QuerySet.update`, `bulk_create`, SQL."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete, pre_save

from tailrace.web.accounts.security import request
from tailrace.web.accounts.security.log import record
from tailrace.web.event_types import AccountChanged, PasswordChanged, PermissionsChanged

FLAGS = ("is_active", "is_staff", "is_superuser")
WATCHED = {*FLAGS, "password"}
MANAGERS = {
    (User.groups.through, False): "groups",
    (User.groups.through, True): "user_set",
    (User.user_permissions.through, False): "user_permissions",
    (User.user_permissions.through, True): "user_set",
    (Group.permissions.through, False): "permissions",
    (Group.permissions.through, True): "group_set",
}
"""The manager of the linked objects, by many-to-many table and whether the change is reverse."""
_BEFORE = "_before_this_save"


def connect() -> None:
    pre_save.connect(_remember, sender=User, dispatch_uid="security.before")
    post_save.connect(_record_changes, sender=User, dispatch_uid="security.changed")
    post_delete.connect(_record_deleted, sender=User, dispatch_uid="security.deleted")
    pre_delete.connect(_record_deleted_group, sender=Group, dispatch_uid="security.deleted")
    for through, _reverse in MANAGERS:
        m2m_changed.connect(_record_links, sender=through, dispatch_uid="security.links")


def _remember(instance: User, update_fields: Iterable[str] | None, raw: bool, **_: Any) -> None:
    if raw or instance.pk is None or not WATCHED.intersection(update_fields or WATCHED):
        return
    setattr(instance, _BEFORE, User.objects.filter(pk=instance.pk).values(*WATCHED).first())


def _record_changes(instance: User, created: bool, raw: bool, **_: Any) -> None:
    before = instance.__dict__.pop(_BEFORE, None)
    if created and not raw and request.current() is not None:
        flags = [f"{flag}: yes" for flag in FLAGS[1:] if getattr(instance, flag)]
        record(AccountChanged, instance, changes=["created", *flags])
    if before is None:
        return
    changed = [flag for flag in FLAGS if getattr(instance, flag) != before[flag]]
    if changed:
        values = [f"{flag}: {'yes' if getattr(instance, flag) else 'no'}" for flag in changed]
        record(AccountChanged, instance, changes=values)
    # A login may hash the same password again, with more iterations: that is no change.
    is_new = vars(instance).get("_password") is not None or not instance.has_usable_password()
    if instance.password != before["password"] and is_new:
        record(PasswordChanged, instance)


def _record_deleted(instance: User, **_: Any) -> None:
    if request.current() is not None:
        record(AccountChanged, instance, changes=["deleted"])


def _record_deleted_group(instance: Group, **_: Any) -> None:
    if request.current() is not None:
        removed = _names(instance.permissions.all())
        record(PermissionsChanged, group=instance.name, removed=[*removed, "the group itself"])


def _record_links(
    sender: Any, instance: Any, action: str, reverse: bool, model: Any, pk_set: Any, **_: Any
) -> None:
    """Record the permissions and groups that each user or group gets or loses, in the transaction
    of the change."""
    if request.current() is None:
        return
    linked = getattr(instance, MANAGERS[sender, reverse])
    match action:
        case "post_add":
            others = model.objects.filter(pk__in=pk_set)
        case "pre_remove":
            others = linked.filter(pk__in=pk_set)
        case "pre_clear":
            others = linked.all()
        case _:
            return
    pairs = [(other, [instance]) for other in others] if reverse else [(instance, list(others))]
    for owner, things in pairs:
        names = _names(things)
        added, removed = (names, []) if action == "post_add" else ([], names)
        if names and isinstance(owner, User):
            record(PermissionsChanged, owner, added=added, removed=removed)
        elif names:
            record(PermissionsChanged, group=owner.name, added=added, removed=removed)


def _names(things: Iterable[Permission | Group]) -> list[str]:
    return sorted(
        f"group:{thing.name}"
        if isinstance(thing, Group)
        else f"{thing.content_type.app_label}.{thing.codename}"
        for thing in things
    )
