"""Find modules and classes that apps declare."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import TypeVar

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")

PLATFORM = "platform"
"""The folder of an app with the modules that only the platform imports, such as its menu."""


def import_modules(name: str) -> list[ModuleType]:
    """Import the module `name` of each installed app that has one, and all modules below it if it
    is a package; return these modules in the order of INSTALLED_APPS."""
    modules = []
    for config in apps.get_app_configs():
        if path := find_module(config, name):
            module = importlib.import_module(path)
            _import_submodules(module)
            modules.append(module)
    return modules


def find_module(app: AppConfig, name: str) -> str | None:
    """Return the dotted name of the app's module `name`, in the app's folder or in its folder
    `platform`; None if there is none. Raises ImproperlyConfigured if there are two."""
    modules = [
        f"{app.name}.{path}"
        for path in (name, f"{PLATFORM}.{name}")
        if app.module and _exists(f"{app.name}.{path}")
    ]
    if len(modules) > 1:
        raise ImproperlyConfigured(f"{' and '.join(modules)} both exist; keep one of them")
    return modules[0] if modules else None


def _exists(name: str) -> bool:
    """Whether there is such a module. A folder without `__init__.py` is none: git leaves folders
    with compiled files when it removes or moves a package."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):  # an import in the folder fails
            raise
        return False
    return spec is not None and spec.origin is not None


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
