"""A real model is loaded from its folder, without any network."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.domains.records.search.embeddings import onnx, transformer
from tailrace.domains.records.search.embeddings.folder import read_folder
from tailrace.domains.records.search.embeddings.loaded import load
from tailrace.domains.records.search.embeddings.model import EmbeddingModel, ModelUnusable, Vector
from tailrace.domains.records.search.embeddings.transformer import TransformerModel
from tests.records.embeddings.folders import WEIGHTS, copy_without_weights, onnx_folder

TEXTS = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "A cheetah is running behind its prey.",
]
EXPECTED = [0.7553, -0.1050, 0.1419]
"""Cosines of the first text and the others, as sentence-transformers gives them for this model."""


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingModel:
    return TransformerModel(onnx_folder(tmp_path_factory.mktemp("model") / "minilm"))


def test_embeddings_are_those_of_the_model(model: EmbeddingModel) -> None:
    first, *others = model.encode(TEXTS)
    assert [cosine(first, other) for other in others] == pytest.approx(EXPECTED, abs=0.02)
    assert len(first) == model.key.dimensions == 384
    assert cosine(first, first) == pytest.approx(1)


def test_the_batch_and_its_padding_change_nothing(model: EmbeddingModel) -> None:
    texts = [*TEXTS, "long " * 60, "", *TEXTS]
    together = model.encode(texts)
    [alone] = model.encode([texts[1]])
    assert cosine(together[1], alone) > 0.98
    assert cosine(together[1], together[7]) > 0.98


def test_the_end_of_a_long_text_is_left_out(model: EmbeddingModel) -> None:
    begin = "water levels of the river " * 70
    one, other = model.encode([begin, begin + "and the recipe of a cake " * 1_000])
    assert cosine(one, other) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("package", ["numpy", "onnxruntime", "tokenizers"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for module in (transformer, onnx):
        monkeypatch.delitem(sys.modules, module.__name__)
    with pytest.raises(ModelUnusable, match=rf"needs {package}: install tailrace\[models\]"):
        load(f"/a/model/without/{package}")


def test_other_weights_are_another_version(tmp_path: Path) -> None:
    one, other = (onnx_folder(tmp_path / name) for name in ("one", "other"))
    assert read_folder(one).key().version == read_folder(other).key().version
    (other / "model.onnx").write_bytes(b"other weights")
    assert read_folder(one).key().version != read_folder(other).key().version


def _remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def _write(name: str, content: object) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(
        content if isinstance(content, str) else json.dumps(content)
    )


def _cut_weights(folder: Path) -> None:
    with WEIGHTS.open("rb") as weights:
        (folder / "model.onnx").write_bytes(weights.read(500_000))


BROKEN = {
    "nothing but a name": (lambda folder: folder.rename(folder.with_name("away")), "not a folder"),
    "no tokenizer": (_remove("tokenizer.json"), "tokenizer.json is missing: copy the whole folder"),
    "no JSON": (_write("config.json", "{"), "config.json cannot be read"),
    "no object": (_write("config.json", "[]"), "has an unexpected structure"),
    "no size": (_write("config.json", {}), "hidden_size is None, not a whole number"),
    "too wide": (
        _write("config.json", {"hidden_size": 4096, "max_position_embeddings": 512}),
        "4096 dimensions; at most 2000",
    ),
    "a step with code": (
        _write("modules.json", [{"type": "my_package.Custom", "path": ""}]),
        "the step 'Custom' is not supported",
    ),
    "another pooling": (
        _write("1_Pooling/config.json", {"pooling_mode_lasttoken": True}),
        "pooling_mode_lasttoken is not supported",
    ),
    "no weights": (lambda folder: None, "has neither model.onnx"),
    "weights of another format": (_write("model.safetensors", ""), "has neither model.onnx"),
    "weights cut off": (_cut_weights, "model.onnx cannot be loaded"),
    "no ONNX": (_write("model.onnx", "hello"), "model.onnx cannot be loaded"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_folder_is_named_with_the_way_out(case: str, tmp_path: Path) -> None:
    change, message = BROKEN[case]
    folder = copy_without_weights(tmp_path / "model")
    change(folder)
    with pytest.raises(ModelUnusable, match=message) as raised:
        TransformerModel(folder)
    assert str(tmp_path) in str(raised.value)
