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


def make_admin(*, keep_password: bool = False) -> str | None:
    """Create the superuser admin; return its password, or None if there is a superuser already.
    With `keep_password`, the password is also kept in var/admin_password."""
    from django.contrib.auth.models import User

    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    if keep_password:
        password = private_files.read_or_create(_password_file(), password)
    User.objects.create_superuser("admin", "admin@localhost", password)
    return password


def kept_password() -> str | None:
    """Return the password of admin in var/admin_password; None if there is none, or if the user
    has another one by now."""
    from django.contrib.auth.models import User

    file, admin = _password_file(), User.objects.filter(username="admin").first()
    if admin is None or not file.is_file():
        return None
    password = file.read_text().strip()
    return password if admin.check_password(password) else None


def _password_file() -> Path:
    return Path(settings.VAR_DIR) / "admin_password"
