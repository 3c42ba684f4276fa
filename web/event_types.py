"""The event types of the security log. No payload contains a password, token, code or secret, nor a
login name that belongs to no user: it may be a password in the wrong field."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from pydantic import BaseModel, ConfigDict

from tailrace.events.privacy.visibility import logins_in, logins_with
from tailrace.events.readers import Readers
from tailrace.events.types import EventType

VIEW_LOG = "tailrace_web.view_security_log"
NOT_PERSONAL = (
    "failures", "step", "second_factor", "change", "changes", "revoked", "added", "removed",
    "token", "scopes", "scope", "event_types", "expires_at", "feed", "endpoint",
)  # fmt: skip
"""Payload fields that are kept when the account is deleted."""
HOLDER = "account_holder"
"""The role of the user concerned, for rare events: notified by default."""
WATCHER = "account_watcher"
"""The role of the user concerned, for frequent events: notified if the user subscribes."""
OFFICER = "security"
"""The role of users who may read the whole security log: notified if they subscribe."""


class SecurityEvent(EventType):
    """Something happened to an account, its keys or its permissions."""

    abstract = True
    family_title = "Security of your account"
    name = "security"
    receiver_roles: ClassVar[Sequence[str]] = (HOLDER, OFFICER)
    can_mail = can_web = True
    api_records = False

    class Payload(BaseModel):
        model_config = ConfigDict(extra="forbid", defer_build=True)  # built when it is first used
        user: str = ""
        """The login of the user concerned; empty: no user, or an unknown login."""
        user_id: int | None = None
        address: str = ""
        """The client's IP address; empty: recorded by a command or a job."""

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `account/7`. It contains the id, since logins change."""
        return f"account/{payload['user_id']}" if payload.get("user_id") else ""

    @classmethod
    def link(cls, event: Any) -> str:
        """Return the URL of the account page, where the user can end sessions and revoke keys."""
        return f"{settings.PUBLIC_URL}/me/account"

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the user concerned and the readers of the whole log, by event id."""
        officers, logins = logins_with(VIEW_LOG), logins_in(events, "user_id")
        return {id: Readers.of([*officers, login]) for id, login in logins.items()}


class _FrequentEvent(SecurityEvent):
    abstract = True
    name = "security"
    receiver_roles = (WATCHER, OFFICER)


class Login(_FrequentEvent):
    """Signed in"""

    name = "security.login"

    class Payload(SecurityEvent.Payload):
        second_factor: str
        """`code`, `recovery code`, or `none`."""


class LoginFailed(_FrequentEvent):
    """Sign-in failed"""

    name = "security.login_failed"

    class Payload(SecurityEvent.Payload):
        """Not every failed attempt is recorded: see docs/reference/platform/accounts.md."""

        failures: int = 0
        """Failures in a row, for this login and IP address."""
        step: str
        """The step that failed: `password`, `code`, or `confirmation`."""


class SignedOutEverywhere(SecurityEvent):
    """All sessions were ended"""

    name = "security.signed_out_everywhere"

    class Payload(SecurityEvent.Payload):
        revoked: list[str]
        """The kinds of keys that were revoked as well: `API tokens`, `feeds`."""


class PasswordChanged(SecurityEvent):
    """The password was changed"""

    name = "security.password_changed"


class ResetRequested(_FrequentEvent):
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
        """The group whose permissions were changed; empty: a user's permissions were changed."""
        added: list[str] = []
        """Permissions as `app.codename`, groups as `group:name`."""
        removed: list[str] = []

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `account/7` or `group/operators`."""
        return f"group/{payload['group']}" if payload["group"] else super().subject(payload)


class _TokenPayload(SecurityEvent.Payload):
    token: int
    token_name: str = ""


class TokenMade(SecurityEvent):
    """An API token was created"""

    name = "security.token_made"

    class Payload(_TokenPayload):
        scopes: list[str]
        expires_at: datetime | None


class TokenChanged(SecurityEvent):
    """An administrator changed which events an API token may record"""

    name = "security.token_changed"

    class Payload(_TokenPayload):
        event_types: list[str]
        event_source: str = ""


class TokenRevoked(_FrequentEvent):
    """An API token was revoked"""

    name = "security.token_revoked"

    class Payload(_TokenPayload):
        pass


class ScopeRefused(_FrequentEvent):
    """An API token was used without the required scope"""

    name = "security.scope_refused"

    class Payload(_TokenPayload):
        scope: str


class _FeedPayload(SecurityEvent.Payload):
    feed: int
    title: str = ""


class FeedMade(SecurityEvent):
    """A feed was created"""

    name = "security.feed_made"

    class Payload(_FeedPayload):
        pass


class FeedRevoked(_FrequentEvent):
    """A feed was revoked"""

    name = "security.feed_revoked"

    class Payload(_FeedPayload):
        pass


class _EndpointPayload(SecurityEvent.Payload):
    endpoint: int
    host: str = ""
    """The host of the endpoint's URL. Path and query are left out: they may contain a secret."""


class EndpointChanged(_FrequentEvent):
    """A webhook endpoint was changed"""

    name = "security.endpoint_changed"

    class Payload(_EndpointPayload):
        change: str
        """`created`, `changed`, `deleted`, or the new state: `enabled`, `paused`, `disabled`."""


class SecretRotated(SecurityEvent):
    """A webhook endpoint has a new secret"""

    name = "security.secret_rotated"

    class Payload(_EndpointPayload):
        pass
