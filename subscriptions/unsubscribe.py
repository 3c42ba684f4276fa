"""unsubscribe: the way out that stands in each mail to a person.

A link is for one person and for what one mail told of: an event type in a role, or all those of a
digest. It needs no login and does not expire. To follow it (GET) changes nothing, since scanners
do that too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.urls import reverse

from subscriptions.models import Digest, DigestItem, EventSubscription

_SIGNER = signing.Signer(salt="tailrace.unsubscribe")


class NoSuchLink(LookupError):
    """The link was not made here, or what it is for is gone."""


@dataclass(frozen=True, slots=True)
class Link:
    """Whom a link is for, and what: (event type, role)."""

    user: User
    what: Sequence[tuple[str, str]]

    @property
    def words(self) -> list[str]:
        return [f"{event_type} as {role.replace('_', ' ')}" for event_type, role in self.what]


def address(user: User, event_type: str, role: str) -> str:
    """Return the link that silences mails about a type in a role."""
    return _address([user.pk, event_type, role])


def address_of_digest(digest: Digest) -> str:
    """Return the link that silences mails about all that the digest of a user tells of."""
    return _address([digest.user_id, digest.pk])


def _address(said: Sequence[str | int | None]) -> str:
    return settings.PUBLIC_URL + reverse("unsubscribe", args=[_SIGNER.sign_object(said)])


def find(token: str) -> Link:
    """Return what the link is for, or raise NoSuchLink."""
    try:
        who, *what = _SIGNER.unsign_object(token)
        user = User.objects.get(pk=who)
    except (signing.BadSignature, User.DoesNotExist, TypeError, ValueError):
        raise NoSuchLink from None
    if len(what) == 2:
        return Link(user, [(what[0], what[1])])
    items = DigestItem.objects.filter(digest=what[0], digest__user=user, event__isnull=False)
    told = sorted(set(items.values_list("event__type", "role")))
    if not told:
        raise NoSuchLink
    return Link(user, told)


@transaction.atomic
def silence(link: Link) -> None:
    """Let the person hear no more of this by mail. Done again, it changes nothing."""
    off = {
        "state": EventSubscription.State.OFF,
        "subject_pattern": "",
        "pace": EventSubscription.Pace.INSTANT,
    }
    for event_type, role in link.what:
        EventSubscription.objects.update_or_create(
            user=link.user, group=None, event_type=event_type, role=role, channel="mail",
            defaults=off,
        )  # fmt: skip
