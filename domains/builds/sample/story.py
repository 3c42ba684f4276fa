"""What happens in the sample backend: the captured notifications, over and over, elsewhere."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from domains.builds.sample.world import PLACES, Place, checksum

CAPTURES = Path(__file__).parent / "captures"
ODD_EVERY = 25
"""Rounds between two that have the captured oddities: unknown types, missing and unknown keys."""
KNOWN_ODD = ("NO_SUCH_EVENT", "lower.case-type")


def captured() -> list[tuple[str, dict[str, str]]]:
    """Return the captured notifications: types and values."""
    page = json.loads((CAPTURES / "notifications.json").read_text())
    return [
        (made["type"], {key: _repaired(value) for key, value in made["data"].items()})
        for made in page["notification"]
    ]


def binaries(place: Place, round: int) -> list[dict[str, object]]:
    """Return what a PACKTRACK's payload holds: binaries of a place, newer in each round."""
    (example,) = json.loads((CAPTURES / "packtrack.json").read_text())
    return [
        example
        | {
            "project": place.project,
            "package": place.package,
            "name": name,
            "version": f"2.{round}",
            "release": f"1.{round}",
            "binaryid": checksum(place.project, name, round),
            "disturl": f"obs://sample/{place.project}/standard/{round}-{place.package}",
        }
        for name in (place.package, f"{place.package}-devel")
    ]


def story(round: int = 0) -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield (type, values, round) for ever, each round at another place."""
    steps = captured()
    while True:
        place = PLACES[round % (len(PLACES) - 1)]
        for type, values in steps:
            if round % ODD_EVERY == ODD_EVERY - 1 or not _is_odd(type, values):
                yield type, _moved(values, place, round), round
        round += 1


def rounds_told(notifications: int) -> int:
    """Return how many rounds that many notifications make, so that revisions never fall back."""
    return -(-notifications // sum(not _is_odd(type, values) for type, values in captured()))


def _is_odd(type: str, values: Mapping[str, str]) -> bool:
    return type in KNOWN_ODD or not values or "surprise" in values


def _moved(values: Mapping[str, str], place: Place, round: int) -> dict[str, str]:
    """Let a captured notification happen to another project, package and person."""
    words = {
        "home:alice": place.project,
        "hello": place.package,
        "hello2": place.packages[1],
        "copy": place.packages[2],
        "alice": place.user,
        "bob": place.reader,
    }
    moved = {key: words.get(value, value) for key, value in values.items()}
    moved |= {key: str(2 * round + int(moved[key])) for key in ("rev",) if key in moved}
    if "srcmd5" in moved:
        digest = checksum(moved["project"], moved["package"], moved["rev"])
        moved |= {"srcmd5": digest, "verifymd5": digest}
    return moved


def _repaired(text: str) -> str:
    """Undo the double encoding of the captured JSON."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text
