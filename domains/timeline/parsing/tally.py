"""Count the points of a file: what was accepted, and what was rejected and why."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

KEPT = 100
"""So many rejected points are kept with their place; all are counted."""
EXCERPT = 200
"""Characters of a rejected point's text that are kept."""


@dataclass(frozen=True)
class Rejected:
    """One point that was not accepted."""

    reason: str
    """One of `points.REASONS`."""
    text: str
    """What stands in the file, cut."""
    member: str = ""
    """The file in the archive; "" if the upload is no archive."""
    line: int | None = None
    """Line in the file, from 1; for formats of lines and for XML."""
    record: int | None = None
    """Number of the record in its list, from 1; for JSON."""
    offset: int | None = None
    """Byte in the unpacked file, at or after which it stands."""


@dataclass
class Tally:
    """What was read so far; the reader raises the numbers as it goes. The same file always gives
    the same numbers in the same order, so that a reader that begins again ends with the same."""

    latest: int
    """A point after this is rejected: a day after the import began, in microseconds since 1970."""
    accepted: int = 0
    """Points yielded."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Points not accepted, by reason."""
    first_rejected: list[Rejected] = field(default_factory=list)
    """The first `KEPT` of them."""
    skipped_members: list[str] = field(default_factory=list)
    """Files of an archive that hold no location history (the first `KEPT`)."""
    formats: Counter[str] = field(default_factory=Counter)
    """Points accepted, by the name of the format."""
    member: str = ""
    """The file of the archive that is being read."""

    @property
    def read(self) -> int:
        """All points of the file so far, accepted or rejected."""
        return self.accepted + self.rejected.total()

    def reject(
        self,
        reason: str,
        value: object,
        *,
        line: int | None = None,
        record: int | None = None,
        offset: int | None = None,
    ) -> None:
        """Count a rejected point, and keep it if it is among the first."""
        self.rejected[reason] += 1
        if len(self.first_rejected) < KEPT:
            text = _excerpt(value)
            self.first_rejected.append(Rejected(reason, text, self.member, line, record, offset))

    def as_json(self) -> Mapping[str, Any]:
        """All of it as values that JSON holds."""
        return {
            "accepted": self.accepted,
            "rejected": dict(self.rejected),
            "first_rejected": [asdict(one) for one in self.first_rejected],
            "skipped_members": self.skipped_members,
            "formats": dict(self.formats),
        }


def _excerpt(value: object) -> str:
    try:
        text = str(value)[:EXCERPT]
    except RecursionError:  # the decoder goes a little deeper than `str`
        text = "nested too deep to be shown"
    return text.replace("\0", "").encode("utf-8", "replace").decode()
