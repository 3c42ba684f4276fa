"""Find, read and describe the settings of all apps."""

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

from django.core.checks import CheckMessage, Error, Info, Warning

from tailrace.environment.settings import ANY_NAME, AppSettings, Problem

T = TypeVar("T", bound=AppSettings)


def settings_classes(apps: Iterable[str]) -> list[type[AppSettings]]:
    """Return the subclasses of AppSettings in every `settings.py` below the folders of the apps.

    Works before Django is set up, as a `settings.py` imports only `environment`.
    """
    return [cls for app in apps for module in _modules(app) for cls in _classes(module)]


class Environment:
    """The environment variables of one process, or the values `given` instead, read and checked."""

    def __init__(
        self, classes: Iterable[type[AppSettings]], given: Mapping[str, Any] | None = None
    ) -> None:
        self.problems: list[Problem] = []
        self.settings: dict[type[AppSettings], AppSettings] = {}
        for cls in classes:
            self.settings[cls], problems = cls.load(given)
            self.problems += problems

    def of(self, cls: type[T]) -> T:
        return cast(T, self.settings[cls])

    @property
    def values(self) -> dict[str, Any]:
        """Every setting by its Django name."""
        return {name: value for settings in self.settings.values() for name, value in settings}

    @cached_property
    def names(self) -> list[str]:
        return [name for cls in self.settings for name in cls.names()]

    def storages(self) -> dict[str, Any]:
        return {
            name: storage
            for settings in self.settings.values()
            for name, storage in settings.storages().items()
        }

    def insecure(self) -> list[CheckMessage]:
        """Return a message for each rule in `insecure` of the settings classes that applies."""
        return [
            _LEVELS[rule.id.rpartition(".")[2][0]](
                rule.problem.format(value), hint=rule.way_out, id=rule.id
            )
            for values in self.settings.values()
            for rule in values.insecure
            if (value := rule.when(values))
        ]

    def unknown(self) -> list[str]:
        """Return the names of set variables that no app declares, but that begin with a prefix of
        an app or differ from a declared name by one typing error."""
        prefixes = tuple(prefix for cls in self.settings for prefix in cls.prefixes)
        names = set(self.names)
        known_prefixes = tuple(
            name.removesuffix(ANY_NAME) for name in names if name.endswith(ANY_NAME)
        )
        return [
            name
            for name in os.environ
            if name not in names
            and (name.startswith(prefixes) or _is_nearly(name, names))
            and not (known_prefixes and name.startswith(known_prefixes))
        ]


_LEVELS = {"E": Error, "W": Warning, "I": Info}


def is_set(name: str) -> bool:
    """Whether the environment variable is set and not blank."""
    return bool(os.environ.get(name, "").strip())


def _is_nearly(name: str, known: Iterable[str]) -> bool:
    """Whether the name differs from a known one by one letter, or by two swapped letters."""
    similar_names = [each for each in known if abs(len(each) - len(name)) <= 1]
    return bool(get_close_matches(name, similar_names, n=1, cutoff=0.85))


def _modules(app: str) -> list[str]:
    spec = find_spec(app)
    folders = list(spec.submodule_search_locations or []) if spec else []
    return [
        ".".join([app, *path.relative_to(folder).with_suffix("").parts])
        for folder in folders
        for path in sorted(Path(folder).rglob("settings.py"))
    ]


def _classes(module: str) -> list[type[AppSettings]]:
    return [
        value
        for value in vars(import_module(module)).values()
        if isinstance(value, type) and issubclass(value, AppSettings) and value.__module__ == module
    ]
