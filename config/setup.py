"""Create what each installation needs: folders, a secret key, an admin user, Flower's password."""

import os
import secrets
from pathlib import Path

from django.conf import settings


def make_folders() -> None:
    """Create the folders of the settings."""
    for folder in (settings.VAR_DIR, settings.STATIC_ROOT, Path(settings.EMAIL_FILE_PATH)):
        folder.mkdir(parents=True, exist_ok=True)


def secret_key() -> str:
    """Return the key in var/secret_key, which the first call creates."""
    return _read_or_create("secret_key", secrets.token_urlsafe(50))


def flower_auth() -> str:
    """Return user:password of Flower: FLOWER_BASIC_AUTH, or the content of var/flower_auth."""
    return settings.FLOWER_BASIC_AUTH or _read_or_create(
        "flower_auth", f"admin:{secrets.token_urlsafe(12)}"
    )


def make_admin(username: str = "admin") -> str | None:
    """Create a superuser if there is none. Return the password, which is not stored in clear."""
    from django.contrib.auth.models import User

    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    User.objects.create_superuser(username, f"{username}@localhost", password)
    return password


def _read_or_create(name: str, new: str) -> str:
    """Return the content of a private file in var; create it with the content `new` if missing."""
    path = settings.VAR_DIR / name
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(descriptor, "w") as file:
        file.write(new)
    return new
