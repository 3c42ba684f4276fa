from pydantic import PositiveInt

from tailrace.environment.settings import AppSettings


class MailSettings(AppSettings):
    """The limit of mails per user. The settings of the mail server are Django's, in `config`."""

    MAIL_BURST: PositiveInt = 20
    """single mails per user within 10 minutes, at most; further events come in a digest"""
