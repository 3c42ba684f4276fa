"""What a user has of each kind, for tests that ask every address: a domain's own in its folder."""

from importlib import import_module
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User


def of_domains(owner: User) -> dict[str, Any]:
    """Make what `stock(owner)` in tests/<domain>/stock.py makes; return it by the word that stands
    before its value in addresses."""
    found: dict[str, Any] = {}
    for path in sorted(Path(__file__).parent.glob("*/stock.py")):
        found |= import_module(f"tests.{path.parent.name}.stock").stock(owner)
    return found
