from typing import Annotated

from tailrace.environment.insecure import Insecure
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Key, Url


class PushSettings(AppSettings):
    """How Tailrace identifies itself to push services (VAPID)."""

    prefixes = ("VAPID_",)
    insecure = (
        Insecure(
            "tailrace.I101",
            "VAPID_PRIVATE_KEY: is not set, so no push messages are sent",
            lambda own: not own.VAPID_PRIVATE_KEY,
            "Create a key with `manage.py make_vapid_keys`.",
        ),
    )

    VAPID_PRIVATE_KEY: Annotated[str, Key()] = ""
    """key that signs push messages, created with `manage.py make_vapid_keys`; empty: no push
    messages are sent"""
    VAPID_SUBJECT: Annotated[str, Url(("mailto", "https"))] = ""
    """contact address for push services, mailto:… or https://…"""
