"""Start the process that compares voices, read its verdicts, and end it if it takes too long."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

from django.conf import settings

from tailrace.domains.protection.services.voices import compare_process
from tailrace.domains.protection.services.voices.compare_process import Header
from tailrace.domains.protection.services.voices.wav import ModelUnusable
from tailrace.environment.folders import BASE_DIR

START_SECONDS = 30
"""Time for loading the model on a busy machine, in addition to the time for each voice."""
_ENVIRONMENT = ("PYTHONPATH", "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Comparison:
    state: str
    reason: str = ""
    score: float | None = None
    model_name: str = ""
    model_version: str = ""


def compare(voices: Sequence[bytes], recordings: Sequence[bytes]) -> list[Comparison]:
    """Return the verdicts on the first recordings, at least one. Raises ModelUnusable.

    A recording that takes too long is broken; the recordings after it are left for another call.
    """
    seconds = settings.PROTECTION_VOICE_SECONDS
    header = Header(
        parent=os.getpid(),
        seconds=START_SECONDS + seconds * (len(voices) + len(recordings)),
        model=settings.PROTECTION_VOICE_MODEL,
        threshold=settings.PROTECTION_VOICE_THRESHOLD,
        voices=[len(voice) for voice in voices],
        recordings=[len(recording) for recording in recordings],
    )
    with tempfile.TemporaryFile() as files:
        for content in (*voices, *recordings):
            files.write(content)
        files.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", compare_process.__name__, json.dumps(asdict(header))],
            stdin=files,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=BASE_DIR,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
            | _ONE_THREAD,
        )
    with process:
        try:
            return _verdicts(_Lines(process.stdout), len(voices), len(recordings))
        finally:
            process.kill()


def _verdicts(lines: "_Lines", voices: int, recordings: int) -> list[Comparison]:
    seconds = settings.PROTECTION_VOICE_SECONDS
    ready = lines.next(START_SECONDS + seconds * voices)
    if ready is None:
        raise ModelUnusable(
            "the comparison did not begin in time: the model is too slow or too large"
        )
    if "unusable" in ready:
        raise ModelUnusable(ready["unusable"])
    model = {"model_name": ready["name"], "model_version": ready["version"]}
    verdicts: list[Comparison] = []
    while len(verdicts) < recordings:
        answer = lines.next(seconds)
        if answer is None:
            reason = f"the comparison took more than {seconds} s, or too much memory"
            return [*verdicts, Comparison("broken", f"{reason} (PROTECTION_VOICE_SECONDS)")]
        verdicts.append(Comparison(**answer, **(model if "score" in answer else {})))
    return verdicts


class _Lines:
    """The lines of JSON that a process writes, with a time limit for each."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file, self._rest = file.fileno() if file else -1, b""

    def next(self, seconds: float) -> Any:
        """Return the value of the next line; None if the process has ended or takes longer."""
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._file], [], [], left)[0]:
                return None
            if not (data := os.read(self._file, 65_536)):
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)
