"""Synthetic speakers, by a source and filters, and WAV files of them."""

import io
import wave

import numpy as np

RATE = 16_000
VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480))
LOW, HIGH = (110.0, 1.0), (210.0, 1.22)
"""Two speakers: their pitch in Hz, and how much shorter the vocal tract is."""


def speech(speaker: tuple[float, float], seconds: float = 3.0, seed: int = 1) -> np.ndarray:
    """Return vowels of the speaker in random order."""
    pitch, scale = speaker
    random = np.random.default_rng(seed)
    parts = []
    for _ in range(int(seconds / 0.25)):
        count = RATE // 4
        wobble = pitch * (1 + 0.03 * np.sin(2 * np.pi * 5 * np.arange(count) / RATE))
        wobble *= 1 + 0.04 * random.standard_normal()
        phase = 2 * np.pi * np.cumsum(wobble) / RATE
        formants = VOWELS[random.integers(len(VOWELS))]
        sound = np.zeros(count)
        for harmonic in range(1, int(7000 / pitch)):
            hertz = harmonic * pitch
            gain = sum(
                1 / (1 + ((hertz - scale * formant) / 90) ** 2) / (n + 1)
                for n, formant in enumerate(formants)
            )
            sound += gain * np.sin(harmonic * phase)
        parts.append(sound * np.hanning(count) ** 0.3)
    whole = np.concatenate(parts) + 0.002 * random.standard_normal(len(parts) * (RATE // 4))
    return 0.5 * whole / np.abs(whole).max()


def wav(samples: np.ndarray, rate: int = RATE, channels: int = 1, width: int = 2) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        values = (np.repeat(samples, channels) * 32_767).astype("<i2")
        file.writeframes(values.tobytes() if width == 2 else bytes(len(values) * width))
    return out.getvalue()
