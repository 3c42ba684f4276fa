"""Errors of operations on endpoints."""


class EndpointError(ValueError):
    """The request was refused. The message names the wrong value and the remedy."""


class FilterError(EndpointError):
    """The URL or the filter of an endpoint was refused; `field` is the wrong field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
