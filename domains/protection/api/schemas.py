"""What the API of protection takes and returns."""

from datetime import datetime

from web.api.schemas import Out


class AlertOut(Out):
    id: int
    kind: str
    source: str
    severity: str
    """info, warning or critical."""
    title: str
    to_do: str
    names: str
    """What it is about, such as the names of leaks; never a watched value."""
    raised_at: datetime
