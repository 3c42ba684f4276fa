"""Create the activity of the sample backend: captured notifications, repeated for its projects."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tailrace.domains.builds.sources.log_page import repaired
from tailrace.samples.builds.projects import PROJECTS, SampleProject, checksum

CAPTURES = Path(__file__).parent / "captures"
ODD_ROUND_EVERY = 25
"""Every 25th round includes the odd notifications: unknown types, missing and unknown keys."""
ODD_TYPES = ("NO_SUCH_EVENT", "lower.case-type")


def captured_notifications() -> list[tuple[str, dict[str, str]]]:
    """Return the type and values of each captured notification."""
    page = json.loads((CAPTURES / "notifications.json").read_text())
    return [
        (entry["type"], {key: repaired(value) for key, value in entry["data"].items()})
        for entry in page["notification"]
    ]


def binaries(project: SampleProject, round: int) -> list[dict[str, object]]:
    """Return the payload of a PACKTRACK: the project's binaries, with a newer version in each
    round."""
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
    """Return the project of a round. The last project is left out: it has its own events in every
    round."""
    return PROJECTS[round % (len(PROJECTS) - 1)]


def activity(round: int = 0) -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield (type, values, round) without end, with another project in each round."""
    notifications = captured_notifications()
    while True:
        project = project_of(round)
        for type, values in notifications:
            if round % ODD_ROUND_EVERY == ODD_ROUND_EVERY - 1 or not _is_odd(type, values):
                yield type, _values_for_project(values, project, round), round
        round += 1


def rounds_of(notifications: int) -> int:
    """Return the number of rounds that contain this many notifications, rounded up.

    With it, activity continues after a restart, so that revisions never decrease.
    """
    per_round = sum(not _is_odd(type, values) for type, values in captured_notifications())
    return -(-notifications // per_round)


def _is_odd(type: str, values: Mapping[str, str]) -> bool:
    return type in ODD_TYPES or not values or "surprise" in values


def _values_for_project(
    values: Mapping[str, str], project: SampleProject, round: int
) -> dict[str, str]:
    """Return the values of a captured notification, changed to the project and its packages and
    users."""
    replacements = {
        "home:alice": project.name,
        "hello": project.package,
        "hello2": project.packages[1],
        "copy": project.packages[2],
        "alice": project.user,
        "bob": project.reader,
    }
    changed = {key: replacements.get(value, value) for key, value in values.items()}
    changed |= {key: str(2 * round + int(changed[key])) for key in ("rev",) if key in changed}
    if "srcmd5" in changed:
        digest = checksum(changed["project"], changed["package"], changed["rev"])
        changed |= {"srcmd5": digest, "verifymd5": digest}
    return changed
