"""The payload of the jobs of plans."""

from pydantic import BaseModel


class AccountPayload(BaseModel):
    """The payload of a handler in a plan: `Payload = AccountPayload`, or a subclass whose other
    fields have defaults. The handler reads the account's data when it runs."""

    account: int
    """The id of the user."""
