"""What an installation has of its own: a key, an admin user, Flower's password."""

import os
import secrets
from pathlib import Path

from config import settings


def make_folders() -> None:
    """Make the folders that the settings name."""
    for folder in (settings.VAR_DIR, settings.STATIC_ROOT, Path(settings.EMAIL_FILE_PATH)):
        folder.mkdir(parents=True, exist_ok=True)


def secret_key() -> str:
    """The key in var/secret_key, made at first."""
    return _kept("secret_key", secrets.token_urlsafe(50))


def flower_auth() -> str:
    """user:password of Flower: FLOWER_BASIC_AUTH, or what is kept in var/flower_auth."""
    return settings.FLOWER_BASIC_AUTH or _kept("flower_auth", f"admin:{secrets.token_urlsafe(12)}")


def make_admin(username: str = "admin") -> str | None:
    """Make a superuser if there is none at all; give the password, which is kept nowhere."""
    from django.contrib.auth.models import User

    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    User.objects.create_superuser(username, f"{username}@localhost", password)
    return password


def _kept(name: str, new: str) -> str:
    """The content of a private file in var; `new` becomes its content if there is none."""
    path = settings.VAR_DIR / name
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(descriptor, "w") as file:
        file.write(new)
    return new
