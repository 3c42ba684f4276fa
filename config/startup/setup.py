"""Set up an installation: private folders, an admin user, Flower's password. `boot` creates the
secret key, before the settings are read."""

import secrets
from pathlib import Path

from django.conf import settings

from tailrace.config.devserver import embedded
from tailrace.environment import private_files


def make_folders() -> None:
    """Create the folders of the settings, and make existing files in var private."""
    for folder in (settings.VAR_DIR, settings.STATIC_ROOT, Path(settings.EMAIL_FILE_PATH)):
        private_files.make_folder(folder)
    private_files.tighten(settings.VAR_DIR, embedded.folder(settings.VAR_DIR))


def flower_auth() -> str:
    """Return Flower's user:password: FLOWER_BASIC_AUTH, or the content of var/flower_auth, which is
    created if it is missing."""
    return settings.FLOWER_BASIC_AUTH or private_files.read_or_create(
        settings.VAR_DIR / "flower_auth", f"admin:{secrets.token_urlsafe(12)}"
    )


def make_admin() -> str | None:
    """Create the superuser admin; return its password, or None if there is a superuser already."""
    from django.contrib.auth.models import User

    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    User.objects.create_superuser("admin", "admin@localhost", password)
    return password
