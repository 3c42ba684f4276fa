"""Run a model in the ONNX format."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from tailrace.domains.records.search.embeddings.model import ModelUnusable

THREADS = 2
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class OnnxEncoder:
    """A model with the inputs `input_ids`, `attention_mask` and `token_type_ids`, or some of them.
    Its output is a vector per token."""

    def __init__(self, file: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                file, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises errors of its own types
            raise ModelUnusable(f"{file} cannot be loaded: {str(error)[:300]}") from None
        self._inputs = [each.name for each in self._session.get_inputs()]
        self._file = file
        if unknown := set(self._inputs) - _INPUTS:
            raise ModelUnusable(
                f"{file} needs the input {', '.join(sorted(unknown))}, which is not supported; use"
                f" a model with only the inputs {', '.join(sorted(_INPUTS))}"
            )

    def run(self, tokens: Any, mask: Any) -> Any:
        """Return an array (texts, tokens, dimensions) for tokens and mask (texts, tokens).

        Raises ModelUnusable.
        """
        values = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(tokens),
        }
        try:
            outputs = self._session.run(None, {name: values[name] for name in self._inputs})
        except Exception as error:
            raise ModelUnusable(f"{self._file} failed: {str(error)[:300]}") from None
        for output in outputs:
            if np.ndim(output) == 3:
                return output
        raise ModelUnusable(f"{self._file} returns no array (texts, tokens, dimensions)")
