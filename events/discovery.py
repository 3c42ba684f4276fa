"""Find what the apps declare: modules of a known name in every installed app."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import TypeVar

from django.apps import apps
from django.utils.module_loading import module_has_submodule

T = TypeVar("T")


def import_modules(name: str) -> list[ModuleType]:
    """Import the module called `name` of every installed app that has one, and return them in the
    order of INSTALLED_APPS. If it is a package, every module below it is imported, too."""
    modules = []
    for config in apps.get_app_configs():
        if config.module and module_has_submodule(config.module, name):
            module = importlib.import_module(f"{config.name}.{name}")
            _import_submodules(module)
            modules.append(module)
    return modules


def _import_submodules(package: ModuleType) -> None:
    for info in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{package.__name__}."):
        importlib.import_module(info.name)


class Described:
    """A base class that apps subclass; the docstring's first paragraph describes the subclass."""

    @classmethod
    def description(cls) -> str:
        return " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())


def subclasses(base: type[T]) -> Iterator[type[T]]:
    """Yield the subclasses of `base` at any depth, each once."""
    yield from dict.fromkeys(_subclasses(base))


def _subclasses(base: type[T]) -> Iterator[type[T]]:
    for cls in base.__subclasses__():
        yield cls
        yield from _subclasses(cls)
