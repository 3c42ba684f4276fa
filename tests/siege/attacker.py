"""Who attacks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Attacker:
    """A user, and what he has made."""

    name: str
    password: str
    tokens: list[str]
    endpoints: list[int]
