from typing import Annotated

from pydantic import PositiveInt

from tailrace.environment.insecure import Insecure, lacks_tls
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Url


class SmsSettings(AppSettings):
    """The account that sends text messages."""

    prefixes = ("SMS_",)
    insecure = (
        Insecure(
            "tailrace.W103",
            "SMS_URL: is not https",
            lambda own: lacks_tls(own.SMS_URL),
            "Set it to the https:// URL of the service.",
        ),
        Insecure(
            "tailrace.I102",
            "SMS_URL: is not set, so no text messages are sent",
            lambda own: not own.SMS_URL,
            "Set it to https://…/2010-04-01/Accounts/<SID>/Messages.json.",
        ),
    )

    SMS_URL: Annotated[str, Url(("https", "http"))] = ""
    """service that sends text messages, https://…/2010-04-01/Accounts/<SID>/Messages.json;
    empty: none are sent"""
    SMS_TOKEN: str = ""
    """the token of that account"""
    SMS_PER_DAY: PositiveInt = 50
    """text messages (including codes) per user and per number per day, at most"""
    SMS_FROM: str = ""
    """sender of text messages: a number, or the SID of a messaging service"""
