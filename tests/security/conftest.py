from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tailrace.web.accounts.security import second_factor
from tailrace.web.models import SecondFactor
from tests.security.accounts import RIGHT, code_of
from tests.subscriptions.conftest import _no_role_holders  # noqa: F401


@pytest.fixture(autouse=True)
def _pictures(storage_folder: Path) -> None:
    """No attack leaves a picture in the folder of the installation."""


@pytest.fixture
def ann(db: None) -> User:
    return User.objects.create_user("ann", "ann@example.org", password=RIGHT)


@pytest.fixture
def factor(ann: User) -> SecondFactor:
    """Ann's second factor; its first code is used up."""
    row = second_factor.begin(ann)
    assert second_factor.set_up(row, code_of(row, -1))
    row.refresh_from_db()
    return row
