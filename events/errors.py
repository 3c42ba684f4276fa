"""Errors of publishing and reading events."""

from collections.abc import Sequence

from tailrace.events.field_errors import FieldError


class PublishError(ValueError):
    """An event is wrong; no event of the `publish` call was recorded."""


class UnknownEventType(PublishError):
    """No app declares an event type of this name."""


class InvalidPayload(PublishError):
    """The payload, or another field of the event, does not match the event type.

    `fields` says what is wrong where; a path begins with the field, `payload` or another.
    """

    def __init__(self, text: str, fields: Sequence[FieldError] = ()) -> None:
        super().__init__(text)
        self.fields = list(fields)


class UnreadablePayload(ValueError):
    """A recorded payload does not match its event type as it is declared today."""
