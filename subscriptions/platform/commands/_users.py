from django.contrib.auth.models import User
from django.core.management.base import CommandError

from tailrace.environment.suggest import did_you_mean


def active_user(login: str) -> User:
    """Return the active user with this login, or raise CommandError with a suggestion."""
    users = User.objects.filter(is_active=True)
    user = users.filter(username=login).first()
    if user is None:
        hint = did_you_mean(login, users.values_list("username", flat=True)[:1000])
        raise CommandError(f"no active user has the login {login!r}{hint}")
    return user
