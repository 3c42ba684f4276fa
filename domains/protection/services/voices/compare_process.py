"""Compare recordings with enrolled voices in a separate process.

`python -m tailrace.domains.protection.services.voices.compare_process HEADER`: HEADER is a JSON
object with the fields of Header. Standard input contains the files one after the other. The process
writes a line of JSON to standard output when the model is loaded and the voices are read, and one
for each recording. It limits its own time and memory before it reads a byte, and it has no secrets.
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

from tailrace.domains.protection.services.voices.wav import BrokenFile, ModelUnusable, read_wav

MEMORY = 3_000_000_000
"""Limit of the address space in bytes, mostly for libraries. Three times the size of the model's
file is added."""
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Header:
    parent: int
    """The id of the parent process. This process ends with it."""
    seconds: int
    """Limit of the CPU time."""
    model: str
    """Path of the ONNX file; empty: the spectral baseline."""
    threshold: float
    """The similarity from which the model's verdict is a match."""
    voices: list[int]
    """The size of each enrolled voice in bytes."""
    recordings: list[int]
    """The size of each recording in bytes."""


def main(header: Header) -> None:
    limit_process(header)
    # Imported here: this module is also imported by the parent, which needs no numpy.
    from tailrace.domains.protection.services.voices.speaker_model import SpeakerModel
    from tailrace.domains.protection.services.voices.spectra import THRESHOLD, Baseline

    try:
        comparer = SpeakerModel(header.model) if header.model else Baseline()
        threshold = header.threshold if header.model else THRESHOLD
        voices = []
        for size in header.voices:
            with contextlib.suppress(BrokenFile):
                voices.append(comparer.embedding(read_wav(sys.stdin.buffer.read(size))))
    except ModelUnusable as error:
        return write_line({"unusable": str(error)})
    except Exception as error:
        return write_line({"unusable": f"the model failed: {str(error)[:300]}"})
    write_line({"name": comparer.name, "version": comparer.version})
    for size in header.recordings:
        write_line(_compare(comparer, threshold, voices, sys.stdin.buffer.read(size)))


def _compare(comparer: Any, threshold: float, voices: list[Any], content: bytes) -> dict[str, Any]:
    try:
        samples = read_wav(content)
        if not voices:
            return {"state": "unknown"}
        embedding = comparer.embedding(samples)
        score = max(comparer.similarity(embedding, voice) for voice in voices)
    except BrokenFile as error:
        return {"state": "broken", "reason": str(error)}
    except Exception as error:
        return {
            "state": "broken",
            "reason": f"the recording cannot be compared: {str(error)[:200]}",
        }
    return {"state": "matched" if score >= threshold else "different", "score": score}


def write_line(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def limit_process(header: Header) -> None:
    """Limit the time and memory of this process, and end it with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != header.parent:  # the parent ended before prctl
        sys.exit("the parent process has ended")
    resource.setrlimit(resource.RLIMIT_CPU, (header.seconds, header.seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it writes only to its pipe
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = os.path.getsize(header.model) if os.path.exists(header.model) else 0
    with contextlib.suppress(ValueError, OSError):  # macOS does not limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY + 3 * size, MEMORY + 3 * size))
    os.nice(5)


if __name__ == "__main__":
    main(Header(**json.loads(sys.argv[1])))
