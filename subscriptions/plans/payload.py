"""The payload of the jobs of plans."""

from pydantic import BaseModel


class AccountPayload(BaseModel):
    """What a handler that a plan names gets: `Payload = AccountPayload`, or a subclass whose other
    fields have defaults. A job says whose turn it is, not what to do: the handler reads what it
    needs of the account when it runs."""

    account: int
    """The id of the user."""
