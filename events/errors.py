"""Errors of publishing and reading events."""

from collections.abc import Sequence

from tailrace.environment.field_errors import FieldError


class PublishError(ValueError):
    """An event is invalid. The call of `publish` recorded no event."""


class UnknownEventType(PublishError):
    """No app declares an event type of this name."""


class InvalidPayload(PublishError):
    """The payload or another field of the event is invalid.

    `fields` lists the errors; each path begins with the name of the event's field, as in
    `("payload", "user")`.
    """

    def __init__(self, text: str, fields: Sequence[FieldError] = ()) -> None:
        super().__init__(text)
        self.fields = list(fields)


class UnreadablePayload(ValueError):
    """A recorded payload does not match the current declaration of its event type."""
