"""The tokens of password reset links. Their age is measured by the database's clock."""

from datetime import datetime

from django.contrib.auth.tokens import PasswordResetTokenGenerator

from tailrace.db.query import database_now


class ResetTokens(PasswordResetTokenGenerator):
    """Django's token generator with the time of the database."""

    def _now(self) -> datetime:
        return database_now().replace(tzinfo=None)


reset_tokens = ResetTokens()
