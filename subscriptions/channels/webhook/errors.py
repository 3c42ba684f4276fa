"""Why what an owner wants of an endpoint is refused."""


class EndpointError(ValueError):
    """The request was refused; the message names the value and what to do."""


class FilterError(EndpointError):
    """The filter of an endpoint is refused; `field` is the one that is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
