"""Personal data that the web and the admin store."""

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType

from tailrace.events.models import Event
from tailrace.events.privacy.erase import erase
from tailrace.jobs.models import RequestKey
from tailrace.web.accounts.personal_data import BATCH, PersonalData
from tailrace.web.event_types import NOT_PERSONAL
from tailrace.web.models import AnsweredRequest, ApiToken, SecondFactor


class Keys(PersonalData):
    """API tokens and the second factor."""

    rows = {ApiToken: "user", SecondFactor: "user"}


class RequestKeys(PersonalData):
    """The Idempotency-Keys of your API requests. They are always deleted after some days."""

    rows = {RequestKey: "user", AnsweredRequest: "user"}


class Audit(PersonalData):
    """Your name in the audit log of operators. The entries are kept under the name "deleted user"
    with a number."""

    def delete(self, user: User) -> int:
        pseudonym = f"deleted user {user.pk}"
        users = ContentType.objects.get_for_model(User)
        about = LogEntry.objects.filter(content_type=users, object_id=str(user.pk))
        changed = about.exclude(object_repr=pseudonym).update(object_repr=pseudonym)
        if LogEntry.objects.filter(user=user).exists():
            placeholder, _ = User.objects.get_or_create(
                username=f"deleted-user-{user.pk}",
                defaults={"is_active": False, "password": "!"},
            )
            changed += LogEntry.objects.filter(user=user).update(user=placeholder)
        return changed


class SecurityLog(PersonalData):
    """Your name, your IP addresses and the names of your tokens and feeds in the security log. The
    entries are kept without them."""

    def delete(self, user: User) -> int:
        entries = Event.objects.filter(subject=f"account/{user.pk}", payload__has_key="user")
        ids = list(entries.values_list("source", "source_id")[:BATCH])
        for source in {source for source, _ in ids}:
            erase(source, [id for each, id in ids if each == source], keep=NOT_PERSONAL)
        return len(ids)
