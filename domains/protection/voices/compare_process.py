"""Compare recordings with enrolled voices in a process of its own.

`python -m tailrace.domains.protection.voices.compare_process HEADER`: HEADER is a JSON object with
the fields of Header; standard input has the files, one after the other. Standard output gets a line
of JSON once the model is loaded and the voices are read, and one for each recording. The process
limits its own time and memory before it reads a byte; it knows no secrets.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from dataclasses import dataclass
from typing import Any

from tailrace.domains.protection.voices import spectra
from tailrace.domains.protection.voices.speaker_model import ModelUnusable, SpeakerModel
from tailrace.domains.protection.voices.wav import BrokenFile, read_wav

MEMORY = 3_000_000_000
"""Address space, most of it libraries; the file of the model comes three times on top."""
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Header:
    """What the process gets."""

    parent: int
    """The process that started it, and with which it ends."""
    seconds: int
    """CPU time."""
    model: str
    """Path of the ONNX file; empty: the baseline."""
    threshold: float
    """Of the model."""
    voices: list[int]
    """Bytes of each enrolled voice."""
    recordings: list[int]
    """Bytes of each recording."""


class Baseline:
    name, version = spectra.NAME, spectra.VERSION
    embedding = staticmethod(spectra.embedding)
    similarity = staticmethod(spectra.similarity)


def main(header: Header) -> None:
    limit_process(header)
    try:
        comparer = SpeakerModel(header.model) if header.model else Baseline()
        threshold = header.threshold if header.model else spectra.THRESHOLD
        voices = []
        for size in header.voices:
            with contextlib.suppress(BrokenFile):
                voices.append(comparer.embedding(read_wav(sys.stdin.buffer.read(size))))
    except ModelUnusable as error:
        return say({"unusable": str(error)})
    except Exception as error:
        return say({"unusable": f"the model failed: {str(error)[:300]}"})
    say({"name": comparer.name, "version": comparer.version})
    for size in header.recordings:
        say(_compare(comparer, threshold, voices, sys.stdin.buffer.read(size)))


def _compare(comparer: Any, threshold: float, voices: list[Any], content: bytes) -> dict[str, Any]:
    try:
        samples = read_wav(content)
        if not voices:
            return {"state": "unknown"}
        own = comparer.embedding(samples)
        score = max(comparer.similarity(own, voice) for voice in voices)
    except BrokenFile as error:
        return {"state": "broken", "reason": str(error)}
    except Exception as error:
        return {"state": "broken", "reason": f"it cannot be compared: {str(error)[:200]}"}
    return {"state": "matched" if score >= threshold else "different", "score": score}


def say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def limit_process(header: Header) -> None:
    """End this process by a signal at its limits, and with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != header.parent:  # it had ended before
        sys.exit("the parent process has ended")
    resource.setrlimit(resource.RLIMIT_CPU, (header.seconds, header.seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it writes to its pipe alone
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = os.path.getsize(header.model) if os.path.exists(header.model) else 0
    with contextlib.suppress(ValueError, OSError):  # macOS does not limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY + 3 * size, MEMORY + 3 * size))
    os.nice(5)


if __name__ == "__main__":
    main(Header(**json.loads(sys.argv[1])))
