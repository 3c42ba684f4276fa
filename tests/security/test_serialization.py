"""What runs code when it is read back is written nowhere: data is JSON."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.config.celery import app

ROOT = Path(__file__).parents[2]
FORBIDDEN = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def sources() -> Iterator[Path]:
    """Every Python file of the project."""
    for path in ROOT.rglob("*.py"):
        folders = path.relative_to(ROOT).parts[:-1]
        if not any(name.startswith(".") or name in ("var", "node_modules") for name in folders):
            yield path


def _called(function: ast.expr) -> str:
    return getattr(function, "id", "") or getattr(function, "attr", "")


def forbidden_in(source: str) -> set[str]:
    """The names of forbidden modules that the source imports, in whatever way."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and "import" in _called(node.func):
            names |= {str(one.value) for one in node.args[:1] if isinstance(one, ast.Constant)}
    parts = {name: set(name.split(".")) for name in names}
    return {name for name, words in parts.items() if words & FORBIDDEN}


@pytest.mark.parametrize(
    "source",
    [
        "import marshal",
        "import a, pickle as p",
        "from shelve import open",
        "def f():\n  import dill",
        "import_module('pickle')",
        "__import__('marshal')",
        "from django.core.serializers import pickle",
    ],
)
def test_the_search_sees_each_way_to_import(source: str) -> None:
    assert forbidden_in(source)


def test_no_source_imports_pickle_marshal_or_shelve() -> None:
    texts = {path: path.read_text("utf-8") for path in sources()}
    assert len(texts) > 500
    words = {path: text for path, text in texts.items() if any(w in text for w in FORBIDDEN)}
    imported = {str(path.relative_to(ROOT)): forbidden_in(text) for path, text in words.items()}
    assert {path: names for path, names in imported.items() if names} == {}


def test_celery_takes_and_sends_json_alone() -> None:
    assert set(app.conf.accept_content) == {"json"}
    assert (app.conf.task_serializer, app.conf.result_serializer) == ("json", "json")
