"""Setup: an admin whose password is shown once, and private files for what is made up."""

import stat
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.models import User

from tailrace.config.commands.run import addresses
from tailrace.config.startup import setup
from tailrace.events.management.subcommands import call_subcommand


@pytest.fixture
def var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty var folder."""
    monkeypatch.setattr(settings, "VAR_DIR", tmp_path)
    return tmp_path


@pytest.mark.django_db
def test_the_admins_password_is_printed_once_and_works(var: Path) -> None:
    first, second = StringIO(), StringIO()
    call_subcommand("setup", stdout=first)
    call_subcommand("setup", stdout=second)
    password = first.getvalue().split("password: ")[1].split()[0]
    user = authenticate(username="admin", password=password)
    assert user is not None
    assert user.is_superuser
    assert second.getvalue() == ""
    assert not any(password in path.read_text() for path in var.iterdir() if path.is_file())


@pytest.mark.django_db
def test_an_existing_superuser_prevents_a_second_admin(var: Path) -> None:
    User.objects.create_superuser("root", "root@localhost", "long-password")
    assert setup.make_admin() is None
    assert User.objects.count() == 1


def test_made_up_secrets_are_kept_in_private_files(
    var: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "FLOWER_BASIC_AUTH", "")
    assert setup.flower_auth() == setup.flower_auth()
    assert setup.flower_auth().startswith("admin:")
    assert stat.S_IMODE((var / "flower_auth").stat().st_mode) == 0o600
    monkeypatch.setattr(settings, "FLOWER_BASIC_AUTH", "me:mine")
    assert setup.flower_auth() == "me:mine"


def test_run_prints_where_everything_is() -> None:
    lines = addresses()
    ours = ["Overview", "Admin", "Flower", "Subscriptions", "API", "Mails"]
    assert list(lines) == [*ours, "Feed", "Bus", "Timeline", "Protection", "Records"]
    assert lines["Feed"].endswith("/feeds/projects/home:alice.atom")
    assert settings.EMAIL_FILE_PATH in lines["Mails"]
    assert settings.BUS_BACKENDS["file"].removeprefix("file://") in lines["Bus"]
