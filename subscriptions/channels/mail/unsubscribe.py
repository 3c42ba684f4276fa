"""The unsubscribe links in mails to users.

A link is for one user and the content of one mail: an event type in a role, or all of a digest. It
needs no login and does not expire. A GET request changes nothing: mail scanners follow links.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.urls import reverse

from tailrace.events.catalog.topics import quoted_title
from tailrace.subscriptions.models import Digest, DigestItem
from tailrace.subscriptions.types.roles import role_words

_SIGNER = signing.Signer(salt="tailrace.unsubscribe")


class InvalidLink(LookupError):
    """The link was not created here, or its user or digest was deleted."""


@dataclass(frozen=True, slots=True)
class Link:
    """A user, and the topics to unsubscribe from: pairs of event type and role."""

    user: User
    topics: Sequence[tuple[str, str]]

    @property
    def words(self) -> list[str]:
        return [f"{quoted_title(name)} as {role_words(role)}" for name, role in self.topics]


def event_url(user: User, event_type: str, role: str) -> str:
    """Return the link that unsubscribes from mails about an event type in a role."""
    return _url(user.pk, event_type, role)


def digest_url(digest: Digest) -> str:
    """Return the link that unsubscribes from mails about everything in a user's digest."""
    return _url(digest.user_id, digest.pk)


def _url(*content: str | int | None) -> str:
    return settings.PUBLIC_URL + reverse("unsubscribe", args=[_SIGNER.sign_object(content)])


def find(token: str) -> Link:
    """Return the link with this token, or raise InvalidLink."""
    try:
        user_id, *content = _SIGNER.unsign_object(token)
        user = User.objects.get(pk=user_id)
    except (signing.BadSignature, User.DoesNotExist, TypeError, ValueError):
        raise InvalidLink from None
    if len(content) == 2:
        return Link(user, [(content[0], content[1])])
    items = DigestItem.objects.filter(digest=content[0], digest__user=user, event__isnull=False)
    topics = sorted(set(items.values_list("event__type", "role")))
    if not topics:
        raise InvalidLink
    return Link(user, topics)
