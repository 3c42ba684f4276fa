"""Read a WAV file: 16 kHz, mono, 16-bit PCM, at most 30 s. Imports neither Django nor settings."""

import wave
from io import BytesIO
from typing import Any

RATE = 16_000
MOST_SECONDS = 30
LEAST_SECONDS = 1
MOST_BYTES = RATE * 2 * MOST_SECONDS + 65_536
"""Limit for a file: its samples, and metadata beside them."""
SILENCE = 0.003
"""Minimum level of the loudest tenth of a second, relative to full scale: about -50 dB."""

Samples = Any
"""An array of float32 from -1 to 1."""


class ModelUnusable(Exception):
    """The model cannot be used. The message gives the reason, and what to do."""


class BrokenFile(ValueError):
    """The file is not a recording that can be compared; the message gives the reason."""


def read_wav(content: bytes) -> Samples:
    """Return the samples. Raises BrokenFile."""
    import numpy as np  # imported here: few processes read recordings, and it takes 25 MB

    if not content:
        raise BrokenFile("the file is empty")
    if len(content) > MOST_BYTES:
        raise BrokenFile(f"the file has {len(content) / 1e6:.1f} MB; the limit is 1 MB")
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise BrokenFile(f"{_format_of(content)}; save it as WAV: 16 kHz, mono, 16-bit PCM")
    try:
        with wave.open(BytesIO(content)) as file:
            _check(file)
            count = file.getnframes()
            frames = file.readframes(min(count, RATE * MOST_SECONDS))
    except BrokenFile:
        raise
    except (wave.Error, EOFError, ValueError, OverflowError, RuntimeError, MemoryError) as error:
        reason = str(error) or "the header is cut off"
        raise BrokenFile(f"the WAV file cannot be read: {reason}") from None
    if len(frames) < count * 2:
        raise BrokenFile(
            f"the file is cut off: it has {len(frames) // 2} of the {count} samples in its header"
        )
    samples = np.frombuffer(frames, dtype="<i2").astype(np.float32) / 32_768
    if _peak_level(samples) < SILENCE:
        raise BrokenFile("the recording is silent")
    return samples


def _check(file: wave.Wave_read) -> None:
    if file.getnchannels() != 1:
        raise BrokenFile(f"the file has {file.getnchannels()} channels; record it in mono")
    if file.getsampwidth() != 2:
        raise BrokenFile(f"the samples have {file.getsampwidth() * 8} bits; use 16-bit PCM")
    if file.getframerate() != RATE:
        raise BrokenFile(f"the file has {file.getframerate():,} samples per second; use 16,000")
    seconds = file.getnframes() / RATE
    if seconds > MOST_SECONDS:
        raise BrokenFile(f"the recording lasts {seconds:,.0f} s; the limit is {MOST_SECONDS} s")
    if seconds < LEAST_SECONDS:
        raise BrokenFile(f"the recording lasts {seconds:.2f} s; the minimum is {LEAST_SECONDS} s")


def _format_of(content: bytes) -> str:
    if content[:3] == b"ID3" or (content[0] == 0xFF and content[1:2] and content[1] & 0xE0 == 0xE0):
        return "this is an MP3 file"
    if content[:4] == b"OggS":
        return "this is an Ogg file"
    return "this is not a WAV file"


def _peak_level(samples: Samples) -> float:
    size = RATE // 10
    parts = samples[: len(samples) // size * size].reshape(-1, size)
    return float((parts**2).mean(axis=1).max() ** 0.5)
