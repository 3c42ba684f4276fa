"""Objects of this domain, for tests that request every address."""

from typing import Any

from django.contrib.auth.models import User

from tests.records.kit import source


def owned_objects(owner: User) -> dict[str, Any]:
    return {"source": source().pk}
