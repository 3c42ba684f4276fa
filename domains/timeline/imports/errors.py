"""Errors of decisions about imports. Their messages are written for the user."""


class NotNow(Exception):
    """The state of the import does not allow the decision; the message states the reason."""
