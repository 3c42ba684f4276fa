"""Why a decision about a deposition is refused."""


class DecisionRefused(Exception):
    """The state of the deposition or record does not allow the action, or its reason is invalid."""
