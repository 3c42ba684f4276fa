"""A reason for the state of a job, and how to write numbers of jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_COUNTED = 1000
"""The maximum number of jobs that are counted for an explanation."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for the state of a job: a code for programs, a sentence for people."""

    code: str
    words: str
    jobs: tuple[int, ...] = ()
    """Ids of the other jobs that the sentence names."""


def job_count(number: int) -> str:
    """Return `no job`, `1 job`, `12 jobs`, or `at least 1,000 jobs`."""
    if number >= MAX_COUNTED:
        return f"at least {MAX_COUNTED:,} jobs"
    return {0: "no job", 1: "1 job"}.get(number, f"{number} jobs")


def job_list(ids: Sequence[int], total: int) -> str:
    """Return `none`, `job 4`, `jobs 4 and 9`, or `jobs 4, 9, 12 and 7 more`."""
    names = [str(id) for id in ids]
    if total > len(ids):
        names.append(f"{total - len(ids)} more")
    if len(names) < 2:
        return f"job {names[0]}" if names else "none"
    return f"jobs {', '.join(names[:-1])} and {names[-1]}"
