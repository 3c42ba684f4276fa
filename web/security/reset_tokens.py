"""The tokens of links to a new password: how old they are, the database's clock decides."""

from datetime import datetime

from django.contrib.auth.tokens import PasswordResetTokenGenerator

from tailrace.db.query import database_now


class ResetTokens(PasswordResetTokenGenerator):
    """Django's tokens, by the clock that takes all decisions."""

    def _now(self) -> datetime:
        return database_now().replace(tzinfo=None)


reset_tokens = ResetTokens()
