"""What a user has of each kind, for tests that ask every address: a domain's own in its folder."""

from importlib import import_module
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User


def of_all_domains(owner: User) -> dict[str, Any]:
    """Make what each tests/<domain>/owned_objects.py makes; return it by the word that stands
    before its value in addresses."""
    objects: dict[str, Any] = {}
    for path in sorted(Path(__file__).parent.glob("*/owned_objects.py")):
        objects |= import_module(f"tests.{path.parent.name}.owned_objects").owned_objects(owner)
    return objects
