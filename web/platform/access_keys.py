"""The access keys of the web: API tokens."""

from django.contrib.auth.models import User

from tailrace.web.accounts import tokens
from tailrace.web.accounts.access_keys import AccessKeys


def _revoke_tokens(user: User) -> None:
    for token in tokens.active(user):
        tokens.revoke(token)


ACCESS_KEYS = [AccessKeys("tokens", "API tokens", _revoke_tokens)]
