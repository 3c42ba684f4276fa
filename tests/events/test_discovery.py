"""A module of a known name is found in an app's folder and in its folder `platform`."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

from tailrace.environment.discovery import find_module


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a package `shop`."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "shop/platform").mkdir(parents=True)
    yield tmp_path / "shop"
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def app_of(folder: Path, *files: str) -> AppConfig:
    for file in ("__init__.py", "platform/__init__.py", *files):
        (folder / file).touch()
    app = AppConfig.create("shop")
    app.module = importlib.import_module("shop")
    return app


@pytest.mark.parametrize(
    ("file", "module"),
    [("menu.py", "shop.menu"), ("platform/menu.py", "shop.platform.menu"), ("menus.py", None)],
)
def test_a_module_is_found_in_both_folders(folder: Path, file: str, module: str | None) -> None:
    assert find_module(app_of(folder, file), "menu") == module


def test_a_module_in_both_folders_is_an_error(folder: Path) -> None:
    app = app_of(folder, "menu.py", "platform/menu.py")
    with pytest.raises(ImproperlyConfigured) as raised:
        find_module(app, "menu")
    assert str(raised.value) == "shop.menu and shop.platform.menu both exist; keep one of them"


def test_a_folder_that_git_left_behind_is_no_module(folder: Path) -> None:
    (folder / "menu/__pycache__").mkdir(parents=True)
    assert find_module(app_of(folder, "platform/menu.py"), "menu") == "shop.platform.menu"


def test_an_import_that_fails_in_the_folder_is_not_hidden(folder: Path) -> None:
    app = app_of(folder, "platform/menu.py")
    (folder / "platform/__init__.py").write_text("import package_of_nobody")
    with pytest.raises(ModuleNotFoundError, match="package_of_nobody"):
        find_module(app, "menu")


def test_a_module_called_platform_is_no_folder(folder: Path) -> None:
    app = app_of(folder)
    (folder / "platform/__init__.py").rename(folder / "platform.py")
    (folder / "platform").rmdir()
    assert find_module(app, "menu") is None
