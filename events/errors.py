"""What can be wrong with an event that is published from inside."""


class PublishError(ValueError):
    """An event was not recorded; nothing of its `publish` call was."""


class UnknownEventType(PublishError):
    """No app declares an event type of this name."""


class InvalidPayload(PublishError):
    """The payload, or a field of the envelope, is not what the event's type declares."""
