from typing import Annotated

from environment.settings import AppSettings
from environment.types import Key, Url


class PushSettings(AppSettings):
    """How Tailrace identifies itself to push services (VAPID)."""

    prefixes = ("VAPID_",)

    VAPID_PRIVATE_KEY: Annotated[str, Key()] = ""
    """signs push messages, made by `manage.py make_vapid_keys`; empty: no push messages are
    sent"""
    VAPID_SUBJECT: Annotated[str, Url(("mailto", "https"))] = ""
    """contact address for push services, mailto:… or https://…"""
