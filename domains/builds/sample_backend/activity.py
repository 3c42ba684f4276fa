"""What happens in the sample backend: the captured notifications, repeated in other projects."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tailrace.domains.builds.sample_backend.projects import PROJECTS, SampleProject, checksum
from tailrace.domains.builds.sources.log_page import repaired

CAPTURES = Path(__file__).parent / "captures"
ODD_ROUND_EVERY = 25
"""Every 25th round includes the odd notifications: unknown types, missing and unknown keys."""
ODD_TYPES = ("NO_SUCH_EVENT", "lower.case-type")


def captured_notifications() -> list[tuple[str, dict[str, str]]]:
    """Return the captured notifications: types and values."""
    page = json.loads((CAPTURES / "notifications.json").read_text())
    return [
        (entry["type"], {key: repaired(value) for key, value in entry["data"].items()})
        for entry in page["notification"]
    ]


def binaries(project: SampleProject, round: int) -> list[dict[str, object]]:
    """Return the payload of a PACKTRACK: the project's binaries, newer in each round."""
    (example,) = json.loads((CAPTURES / "packtrack.json").read_text())
    return [
        example
        | {
            "project": project.name,
            "package": project.package,
            "name": name,
            "version": f"2.{round}",
            "release": f"1.{round}",
            "binaryid": checksum(project.name, name, round),
            "disturl": f"obs://sample/{project.name}/standard/{round}-{project.package}",
        }
        for name in (project.package, f"{project.package}-devel")
    ]


def project_of(round: int) -> SampleProject:
    """Return the project of a round. The last project has its own events in every round."""
    return PROJECTS[round % (len(PROJECTS) - 1)]


def activity(round: int = 0) -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield (type, values, round) without end, each round in another project."""
    notifications = captured_notifications()
    while True:
        project = project_of(round)
        for type, values in notifications:
            if round % ODD_ROUND_EVERY == ODD_ROUND_EVERY - 1 or not _is_odd(type, values):
                yield type, _moved(values, project, round), round
        round += 1


def rounds_of(notifications: int) -> int:
    """Return how many rounds contain that many notifications, so that revisions never decrease."""
    in_one = sum(not _is_odd(type, values) for type, values in captured_notifications())
    return -(-notifications // in_one)


def _is_odd(type: str, values: Mapping[str, str]) -> bool:
    return type in ODD_TYPES or not values or "surprise" in values


def _moved(values: Mapping[str, str], project: SampleProject, round: int) -> dict[str, str]:
    """Return a captured notification's values with other projects, packages and users."""
    replacements = {
        "home:alice": project.name,
        "hello": project.package,
        "hello2": project.packages[1],
        "copy": project.packages[2],
        "alice": project.user,
        "bob": project.reader,
    }
    moved = {key: replacements.get(value, value) for key, value in values.items()}
    moved |= {key: str(2 * round + int(moved[key])) for key in ("rev",) if key in moved}
    if "srcmd5" in moved:
        digest = checksum(moved["project"], moved["package"], moved["rev"])
        moved |= {"srcmd5": digest, "verifymd5": digest}
    return moved
