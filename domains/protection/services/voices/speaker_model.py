"""A speaker-embedding model from an ONNX file. Imports neither Django nor settings.

The model has one input, float32: either the waveform (batch, samples), or log mel bands (batch,
frames, bands), from which the mean of each band is subtracted, as WeSpeaker's models take them. Its
first output is the embedding. Two voices are compared by the cosine of their embeddings.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from tailrace.domains.protection.services.voices import spectra
from tailrace.domains.protection.services.voices.wav import ModelUnusable, Samples


class SpeakerModel:
    """A loaded model. Its version is the beginning of the file's SHA-256."""

    def __init__(self, path: str) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise ModelUnusable("onnxruntime is not installed: install tailrace[voice]") from None
        try:
            content = Path(path).read_bytes()
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 4
            self._session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises errors of its own types
            raise ModelUnusable(f"{path} cannot be loaded: {str(error)[:300]}") from None
        [self._input, *others] = self._session.get_inputs()
        if others or len(self._input.shape) not in (2, 3):
            raise ModelUnusable(
                f"{path} does not take one input of (batch, samples) or (batch, frames, bands)"
            )
        self.name = Path(path).stem
        self.version = hashlib.sha256(content).hexdigest()[:12]

    def embedding(self, samples: Samples) -> Any:
        if len(self._input.shape) == 2:
            values = samples[None, :]
        else:
            bands = self._input.shape[2]
            mel = spectra.log_mel(samples * 32_768, bands if isinstance(bands, int) else 80)
            values = (mel - mel.mean(axis=0))[None]
        outputs = self._session.run(None, {self._input.name: values.astype(np.float32)})
        return np.asarray(outputs[0], dtype=np.float64).ravel()

    @staticmethod
    def similarity(first: Any, second: Any) -> float:
        lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
        return float(first @ second) / lengths if lengths else 0.0
