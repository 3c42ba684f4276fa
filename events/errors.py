"""Errors of publishing and reading events."""


class PublishError(ValueError):
    """An event is wrong; no event of the `publish` call was recorded."""


class UnknownEventType(PublishError):
    """No app declares an event type of this name."""


class InvalidPayload(PublishError):
    """The payload, or another field of the event, does not match the event type."""


class UnreadablePayload(ValueError):
    """A recorded payload does not match its event type as it is declared today."""
