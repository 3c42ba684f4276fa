"""Why a deposition is refused, or a decision about one."""


class DepositionRefused(Exception):
    """Something is wrong with a field: say which, what, and what to do instead."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field, self.message = field, message


class LimitReached(DepositionRefused):
    """The user has as many depositions, or as large ones, as allowed."""


class FilesTooLarge(DepositionRefused):
    """The files have more bytes than those of one deposition may have."""


class StorageUnavailable(Exception):
    """Files cannot be written now."""


class DecisionRefused(Exception):
    """The state of the deposition or record does not allow the decision, or its reason is wrong."""
