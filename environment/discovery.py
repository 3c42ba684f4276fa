"""Find modules and classes that apps declare."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import TypeVar

from django.apps import apps
from django.utils.module_loading import module_has_submodule

T = TypeVar("T")


def import_modules(name: str) -> list[ModuleType]:
    """Import the module `name` of each installed app that has one; return these modules in the
    order of INSTALLED_APPS. If the module is a package, all modules below it are imported, too."""
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
    """A base class whose subclasses are described by the first paragraph of their docstrings."""

    @classmethod
    def description(cls) -> str:
        return " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())


def subclasses(base: type[T]) -> Iterator[type[T]]:
    """Yield the direct and indirect subclasses of `base`, each once."""
    yield from dict.fromkeys(_subclasses(base))


def _subclasses(base: type[T]) -> Iterator[type[T]]:
    for cls in base.__subclasses__():
        yield cls
        yield from _subclasses(cls)
