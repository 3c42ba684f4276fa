"""Why a decision about a deposition is refused."""


class NotNow(Exception):
    """The deposition or record is in a state that does not allow this."""
