"""Read the folder of a model, in the layout of sentence-transformers.

    config.json                     sizes of the model
    tokenizer.json                  how texts are split into tokens
    modules.json                    the steps in their order: Transformer, Pooling, Normalize
    1_Pooling/config.json           how the vectors of all tokens are combined
    sentence_bert_config.json       maximum number of tokens
    model.onnx or onnx/model.onnx   the weights, in the ONNX format

No code in the folder is executed, and no other files are read.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace.domains.records.search.embeddings.model import ModelKey, ModelUnusable
from tailrace.domains.records.search.embeddings.settings import MOST_DIMENSIONS

MOST_TOKENS = 512
"""Maximum number of tokens of a text, for all models: time and memory grow with its square."""
_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The configuration of a model, as read from its folder."""

    path: Path
    config: dict[str, Any]
    weights: Path
    pooling: str
    """How the vectors of all tokens are combined: mean, cls (the first token's vector) or max."""
    dimensions: int
    most_tokens: int
    prompt: str
    """Text that is put before each text."""

    def key(self) -> ModelKey:
        """Return the key: the folder's name, a version, and the number of dimensions.

        The version is the beginning of a SHA-256 hash of all files and options that affect vectors.
        """
        digest = hashlib.sha256(f"{self.pooling} {self.most_tokens} {self.prompt}".encode())
        for file in (self.path / "config.json", self.path / "tokenizer.json", self.weights):
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
        names = [part for part in self.path.parts if part not in ("/", "model")]
        return ModelKey(names[-1][:100] if names else "", digest.hexdigest()[:12], self.dimensions)


def read_folder(path: Path) -> ModelFolder:
    """Read the configuration of a model without loading its weights. Raises ModelUnusable."""
    if not path.is_dir():
        raise ModelUnusable(f"{path} is not a folder that can be read")
    config = _json(path / "config.json")
    _require(path / "tokenizer.json")
    steps = _steps(path)
    pooling = _json(path / steps.get("Pooling", "1_Pooling") / "config.json")
    transformer = _json(path / "sentence_bert_config.json", optional=True)
    dimensions = _number(path, config, "hidden_size")
    if dimensions > MOST_DIMENSIONS:
        raise ModelUnusable(
            f"{path}: its vectors have {dimensions} dimensions; at most {MOST_DIMENSIONS} can be"
            " indexed"
        )
    most = _number(path, config, "max_position_embeddings")
    return ModelFolder(
        path=path,
        config=config,
        pooling=_pooling(path, pooling),
        weights=_weights(path),
        dimensions=dimensions,
        most_tokens=min(transformer.get("max_seq_length") or most, most, MOST_TOKENS),
        prompt=_prompt(path),
    )


def _steps(path: Path) -> dict[str, str]:
    """Return the folders of the model's steps by kind. Raises ModelUnusable for an unknown kind."""
    steps: dict[str, str] = {}
    for module in _json(path / "modules.json", kind=list):
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind not in ("Transformer", "Pooling", "Normalize"):
            raise ModelUnusable(
                f"{path / 'modules.json'}: the step {kind!r} is not supported; use a model with"
                " only the steps Transformer, Pooling and Normalize"
            )
        steps[kind] = str(module.get("path", ""))
    return steps


def _pooling(path: Path, config: dict[str, Any]) -> str:
    modes = [
        key for key, value in config.items() if key.startswith("pooling_mode_") and value is True
    ]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise ModelUnusable(
            f"{path}: the pooling {', '.join(modes) or '(none)'} is not supported; use a model that"
            " pools by mean, by max or by the first token (cls)"
        )
    return _POOLINGS[modes[0]]


def _prompt(path: Path) -> str:
    config = _json(path / "config_sentence_transformers.json", optional=True)
    name = config.get("default_prompt_name")
    return str((config.get("prompts") or {}).get(name, "")) if name else ""


def _weights(path: Path) -> Path:
    for name in ("model.onnx", "onnx/model.onnx"):
        if (path / name).is_file():
            return path / name
    raise ModelUnusable(
        f"{path} has neither model.onnx nor onnx/model.onnx: copy this file from the model's"
        " repository, or export the model to the ONNX format (model.safetensors and"
        " pytorch_model.bin are not read)"
    )


def _require(file: Path) -> None:
    if not file.is_file():
        raise ModelUnusable(f"{file} is missing: copy the whole folder of the model")


def _json(file: Path, kind: type = dict, optional: bool = False) -> Any:
    if optional and not file.exists():
        return kind()
    _require(file)
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelUnusable(f"{file} cannot be read: {str(error)[:200]}") from None
    if not isinstance(value, kind):
        raise ModelUnusable(f"{file} has an unexpected structure: {str(value)[:80]}")
    return value


def _number(path: Path, config: dict[str, Any], key: str) -> int:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelUnusable(f"{path / 'config.json'}: {key} is {value!r}, not a whole number")
    return value
