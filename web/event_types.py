"""The security log: event types of accounts, their keys and their rights.

No payload contains a password, a token, a code or a secret, nor a name that no user has.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import User
from pydantic import BaseModel, ConfigDict

from tailrace.events.readers import Readers
from tailrace.events.types import EventType

VIEW_LOG = "tailrace_web.view_security_log"
NOT_PERSONAL = (
    "failures", "step", "second_factor", "change", "changes", "revoked", "added", "removed",
    "token", "scopes", "scope", "event_types", "expires_at", "feed", "endpoint",
)  # fmt: skip
"""The fields that stay when an account is deleted."""
_BACKEND = "django.contrib.auth.backends.ModelBackend"

HOLDER = "account_holder"
"""The role of the person concerned, for what happens rarely: notified by default."""
WATCHER = "account_watcher"
"""The role of the person concerned, for what happens often: notified if they subscribe."""
OFFICER = "security"
"""The role of those who may read the whole log: notified if they subscribe."""


def officer_names() -> list[str]:
    """Return the logins of the active users who may read the whole log, superusers included."""
    users = User.objects.with_perm(VIEW_LOG, backend=_BACKEND)
    return list(users.values_list("username", flat=True))


class SecurityEvent(EventType):
    """Something happened to an account, its keys or its rights."""

    abstract = True
    family_title = "Security of your account"
    name = "security"
    receiver_roles: ClassVar[Sequence[str]] = (HOLDER, OFFICER)
    can_mail = can_web = True
    api_records = False

    class Payload(BaseModel):
        model_config = ConfigDict(extra="forbid", defer_build=True)  # built when it is first used
        user: str = ""
        """The name of the user concerned; empty: no user, or none that exists."""
        user_id: int | None = None
        address: str = ""
        """The client's IP address; empty: a command, or a job."""

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `account/7`: names change."""
        return f"account/{payload['user_id']}" if payload.get("user_id") else ""

    @classmethod
    def link(cls, event: Any) -> str:
        """Return the page of the account, where keys and sessions are ended."""
        return f"{settings.PUBLIC_URL}/me/account"

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the person concerned, by id since names change, and the readers of the log."""
        officers = officer_names()
        ids = {event.id: event.raw_payload.get("user_id") for event in events}
        users = User.objects.filter(pk__in={*ids.values()} - {None})
        names = dict(users.values_list("pk", "username"))
        return {id: Readers.of([*officers, names.get(user_id, "")]) for id, user_id in ids.items()}


class _Often(SecurityEvent):
    abstract = True
    name = "security"
    receiver_roles = (WATCHER, OFFICER)


class Login(_Often):
    """Signed in"""

    name = "security.login"

    class Payload(SecurityEvent.Payload):
        second_factor: str
        """`code`, `recovery code`, or `none`."""


class LoginFailed(_Often):
    """Sign-in failed"""

    name = "security.login_failed"

    class Payload(SecurityEvent.Payload):
        """Not every failure is an event: see docs/security.md."""

        failures: int = 0
        """How many there were in a row, for this name and address."""
        step: str
        """`password`, `code`, or `confirmation`: the question that was answered wrongly."""


class SignedOutEverywhere(SecurityEvent):
    """All sessions were ended"""

    name = "security.signed_out_everywhere"

    class Payload(SecurityEvent.Payload):
        revoked: list[str]
        """What was revoked, too: `API tokens`, `feeds`."""


class PasswordChanged(SecurityEvent):
    """The password was changed"""

    name = "security.password_changed"


class ResetRequested(_Often):
    """A link to choose a new password was mailed"""

    name = "security.reset_requested"


class SecondFactorChanged(SecurityEvent):
    """The second factor was changed"""

    name = "security.second_factor_changed"

    class Payload(SecurityEvent.Payload):
        change: str
        """`set up`, `removed`, or `new recovery codes`."""


class AccountChanged(SecurityEvent):
    """The account was changed"""

    name = "security.account_changed"

    class Payload(SecurityEvent.Payload):
        changes: list[str]
        """`created`, `deleted`, or a flag with its new value: `is_staff: yes`."""


class PermissionsChanged(SecurityEvent):
    """Groups or permissions were changed"""

    name = "security.permissions_changed"

    class Payload(SecurityEvent.Payload):
        group: str = ""
        """The group whose permissions were changed; empty: it was a user."""
        added: list[str] = []
        """Permissions as `app.codename`, groups as `group:name`."""
        removed: list[str] = []

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `account/7` or `group/operators`."""
        return f"group/{payload['group']}" if payload["group"] else super().subject(payload)


class _OfToken(SecurityEvent.Payload):
    token: int
    token_name: str = ""


class TokenMade(SecurityEvent):
    """An API token was created"""

    name = "security.token_made"

    class Payload(_OfToken):
        scopes: list[str]
        expires_at: datetime | None


class TokenChanged(SecurityEvent):
    """An administrator changed what an API token may record"""

    name = "security.token_changed"

    class Payload(_OfToken):
        event_types: list[str]
        event_source: str = ""


class TokenRevoked(_Often):
    """An API token was revoked"""

    name = "security.token_revoked"

    class Payload(_OfToken):
        pass


class ScopeRefused(_Often):
    """An API token was used without the scope"""

    name = "security.scope_refused"

    class Payload(_OfToken):
        scope: str


class _OfFeed(SecurityEvent.Payload):
    feed: int
    title: str = ""


class FeedMade(SecurityEvent):
    """A feed was created"""

    name = "security.feed_made"

    class Payload(_OfFeed):
        pass


class FeedRevoked(_Often):
    """A feed was revoked"""

    name = "security.feed_revoked"

    class Payload(_OfFeed):
        pass


class _OfEndpoint(SecurityEvent.Payload):
    endpoint: int
    host: str = ""
    """The host of its URL, whose path and query may contain a secret."""


class EndpointChanged(_Often):
    """A webhook endpoint was changed"""

    name = "security.endpoint_changed"

    class Payload(_OfEndpoint):
        change: str
        """`created`, `changed`, `deleted`, or its new state: `enabled`, `paused`, `disabled`."""


class SecretRotated(SecurityEvent):
    """A webhook endpoint has a new secret"""

    name = "security.secret_rotated"

    class Payload(_OfEndpoint):
        pass
