"""A model that cannot be used is named when a process starts."""

from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django.fixtures import Settings

from tailrace.domains.records.search.embeddings.settings import EmbeddingsSettings
from tests.records.embeddings.folders import copy_without_weights, onnx_folder


def problems(settings: Settings, model: str) -> list[str]:
    settings.RECORDS_MODEL = model
    return [f"{each.id} {each.msg}" for each in run_checks(tags=["records"])]


def test_a_broken_folder_is_an_error_with_the_way_out(settings: Settings, tmp_path: Path) -> None:
    folder = copy_without_weights(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"of another format")
    [problem] = problems(settings, str(folder))
    assert problem.startswith(
        f"tailrace_records.E001 RECORDS_MODEL: {folder} has neither model.onnx"
    )
    [problem] = problems(settings, "/no/such/folder")
    assert "RECORDS_MODEL: /no/such/folder is not a folder that can be read" in problem
    assert problems(settings, str(onnx_folder(tmp_path / "sound"))) == []
    assert problems(settings, "hashing:64") == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("models/minilm", "is neither the absolute path of a folder nor hashing:256"),
        ("hashing:4", "dimensions must be between 16 and 2000"),
        ("hashing:9999", "dimensions must be between 16 and 2000"),
    ],
)
def test_a_wrong_value_is_named(value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECORDS_MODEL", value)
    loaded, [problem] = EmbeddingsSettings.load()
    assert f"RECORDS_MODEL: '{value}'" in str(problem)
    assert message in str(problem)
    assert loaded.RECORDS_MODEL == "hashing:256"
