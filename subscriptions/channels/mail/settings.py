from pydantic import PositiveInt

from tailrace.environment.settings import AppSettings


class MailSettings(AppSettings):
    """How many mails a person gets; the mail server itself is Django's, in `config`."""

    MAIL_BURST: PositiveInt = 20
    """mails that one person gets at once within 10 minutes; the others come in a digest"""
