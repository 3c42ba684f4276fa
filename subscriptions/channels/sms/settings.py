from typing import Annotated

from environment.settings import AppSettings
from environment.types import Url


class SmsSettings(AppSettings):
    """The account that sends text messages."""

    prefixes = ("SMS_",)

    SMS_URL: Annotated[str, Url(("https", "http"))] = ""
    """service that sends text messages, https://…/2010-04-01/Accounts/<SID>/Messages.json;
    empty: none are sent"""
    SMS_TOKEN: str = ""
    """the token of that account"""
    SMS_FROM: str = ""
    """sender of text messages: a number, or the SID of a messaging service"""
