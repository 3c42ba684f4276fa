"""Count the accepted points of a file, and the rejected points with their reasons."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tailrace.domains.timeline.imports.files.parsing.values import microseconds

KEPT = 100
"""Maximum rejected points that are kept with their positions. All of them are counted."""
MOST_TAGS = 100
EXCERPT = 200
"""Maximum characters of a rejected point's text that are kept."""


@dataclass(frozen=True)
class Rejected:
    """A rejected point."""

    reason: str
    """One of the reasons in `points`, such as NO_TIME."""
    text: str
    """Truncated text of the point in the file."""
    member: str = ""
    """The file in the archive; "" if the upload is no archive."""
    line: int | None = None
    """Line in the file, from 1. Text and XML formats."""
    record: int | None = None
    """Number of the record in its list, from 1. JSON formats."""
    offset: int | None = None
    """Byte in the unpacked file. The point begins there or later."""


@dataclass(frozen=True)
class TagFilter:
    """Which points of a file are read, by the tag of their device; "" are points without a tag."""

    only: str | None = None
    without: frozenset[str] = frozenset()

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "TagFilter":
        """Return the filter of `Import.tags`."""
        return cls(stored.get("only"), frozenset(stored.get("without", ())))

    def wants(self, tag: str) -> bool:
        return tag not in self.without if self.only is None else tag == self.only


@dataclass
class Tally:
    """Counts of the points read so far, which the reader updates. They depend only on the file, so
    a reader that starts again gets the same counts."""

    latest: int
    """Latest accepted time, in microseconds since 1970."""
    accepted: int = 0
    """Number of accepted points."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Numbers of rejected points by reason."""
    first_rejected: list[Rejected] = field(default_factory=list)
    """The first `KEPT` rejected points."""
    skipped_members: list[str] = field(default_factory=list)
    """The first `KEPT` files of an archive that are no location history."""
    formats: Counter[str] = field(default_factory=Counter)
    """Numbers of accepted points by the name of the format."""
    member: str = ""
    """The file of the archive that is being read."""
    tag_filter: TagFilter = TagFilter()
    tags: Counter[str] = field(default_factory=Counter)
    """Numbers of points by the tag of their device, of all points of a format that has tags."""

    @classmethod
    def at(cls, now: datetime) -> "Tally":
        """Return a tally of points that came at this time. Points may be a day later, because
        clocks and time zones can be wrong."""
        return cls(latest=microseconds(now + timedelta(days=1)))

    @property
    def read(self) -> int:
        """Number of points read so far, accepted or rejected."""
        return self.accepted + self.rejected.total()

    def count_tags(self, counts: Mapping[str, int]) -> None:
        """Add the numbers of points by tag. Only the first MOST_TAGS tags count; points with other
        tags count as points without one."""
        for tag, count in counts.items():
            known = tag in self.tags or len(self.tags) < MOST_TAGS
            self.tags[tag if known else ""] += count

    @property
    def keeps_more(self) -> bool:
        """Whether a further rejected point is kept. If not, its position need not be computed."""
        return len(self.first_rejected) < KEPT

    def reject(
        self,
        reason: str,
        value: object,
        *,
        line: int | None = None,
        record: int | None = None,
        offset: int | None = None,
    ) -> None:
        """Count a rejected point, and keep it if it is among the first `KEPT`."""
        self.rejected[reason] += 1
        if self.keeps_more:
            text = _excerpt(value)
            self.first_rejected.append(Rejected(reason, text, self.member, line, record, offset))

    def as_json(self) -> Mapping[str, Any]:
        """Return the counts as JSON values."""
        return {
            "accepted": self.accepted,
            "rejected": dict(self.rejected),
            "first_rejected": [asdict(point) for point in self.first_rejected],
            "skipped_members": self.skipped_members,
            "formats": dict(self.formats),
        }


def counts_text(reasons: Counter[str]) -> str:
    """Return numbers by reason as text, such as `no time: 300, unparsable value: 12`."""
    return ", ".join(f"{reason}: {count:,}" for reason, count in reasons.most_common())


def _excerpt(value: object) -> str:
    try:
        text = str(value)[:EXCERPT]
    except RecursionError:  # the decoder allows deeper nesting than `str`
        text = "nested too deep to be shown"
    return text.replace("\0", "").encode("utf-8", "replace").decode()
