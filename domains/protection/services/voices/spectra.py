"""Mel spectra of a voice, and the baseline that compares them.

Imports neither Django nor settings. The baseline compares spectra and pitch, not speakers: it
distinguishes clearly different voices, and is no proof of identity.
"""

from typing import Any

import numpy as np

from tailrace.domains.protection.services.voices.wav import RATE, Samples

FRAME, STEP, FFT = 400, 160, 512
"""Frames of 25 ms every 10 ms, and the size of the FFT, in samples."""
BANDS = 40
CEPSTRA = 20
QUIET = 4.0
"""Frames whose log energy is more than twice this value below the loudest frame (35 dB) are
ignored."""
THRESHOLD = 0.5
SCALE = 1.66
"""Chosen so that the similarity is 0.5 at the distance 1.15. Synthetic samples of one speaker are
closer than that, samples of clearly different speakers are not. Similar voices are not
distinguished."""


def log_mel(samples: Samples, bands: int) -> Any:
    """Return the logarithms of the mel bands of each frame."""
    count = 1 + max(0, len(samples) - FRAME) // STEP
    indexes = np.arange(FRAME)[None, :] + STEP * np.arange(count)[:, None]
    frames = samples[indexes] * np.hamming(FRAME)
    power = np.abs(np.fft.rfft(frames, FFT)) ** 2
    return np.log(power @ _filters(bands).T + 1e-10).astype(np.float32)


class Baseline:
    """Compares voices without a model."""

    name, version = "spectral baseline (no speaker model)", "1"

    @staticmethod
    def embedding(samples: Samples) -> Any:
        """Return the mean and spread of the cepstra of the loud frames, and the pitch."""
        mel = log_mel(samples, BANDS)
        energy = mel.mean(axis=1)
        mel = mel[energy > energy.max() - 2 * QUIET]
        band = np.arange(BANDS)
        basis = np.cos(np.pi / BANDS * (band + 0.5)[None, :] * np.arange(1, CEPSTRA)[:, None])
        cepstra = mel @ basis.T * np.sqrt(2 / BANDS)
        return np.concatenate([cepstra.mean(axis=0), cepstra.std(axis=0), [8 * _pitch(samples)]])

    @staticmethod
    def similarity(one: Any, other: Any) -> float:
        """Return the similarity of two embeddings, from 0 to 1; 1 for equal ones."""
        distance = float(np.sqrt(((one - other) ** 2).mean()))
        return float(np.exp(-distance / SCALE))


def _filters(bands: int) -> Any:
    def mel(hertz: Any) -> Any:
        return 1127 * np.log1p(np.asarray(hertz) / 700)

    edges = np.linspace(mel(20), mel(RATE / 2), bands + 2)
    bins = mel(np.fft.rfftfreq(FFT, 1 / RATE))
    rising = (bins[None, :] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins[None, :]) / (edges[2:] - edges[1:-1])[:, None]
    return np.clip(np.minimum(rising, falling), 0, None)


def _pitch(samples: Samples) -> float:
    """Return the logarithm of the median pitch in Hz, by autocorrelation."""
    size, step = 1024, 800
    shortest, longest = RATE // 400, RATE // 60
    pitches = []
    for begin in range(0, len(samples) - size, step):
        frame = samples[begin : begin + size] - samples[begin : begin + size].mean()
        energy = float(frame @ frame)
        if energy < 1e-3:
            continue
        spectrum = np.fft.rfft(frame, 2 * size)
        correlation = np.fft.irfft(np.abs(spectrum) ** 2)[shortest:longest]
        lag = int(correlation.argmax())
        if correlation[lag] > 0.3 * energy:
            pitches.append(np.log(RATE / (lag + shortest)))
    return float(np.median(pitches)) if pitches else float(np.log(150))
