"""The base class of every app's settings: environment variables that pydantic reads and checks. An
invalid variable raises no error: its default is used and the problem is recorded, so that all
problems are listed at once."""

import ast
import inspect
import os
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tailrace.environment.insecure import Insecure
from tailrace.environment.types import Rule

ANY_NAME = "<NAME>"


@dataclass(frozen=True)
class Problem:
    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


@dataclass(frozen=True)
class Variable:
    """One line of docs/reference/settings.md."""

    name: str
    kind: str
    default: str
    meaning: str


class AppSettings(BaseModel):
    """The environment variables of one app: a subclass in its `settings.py`. A field's name is the
    name of the Django setting and, without `validation_alias`, of the variable. The docs show the
    docstring below the field, and `examples` instead of a default that depends on the machine."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    prefixes: ClassVar[tuple[str, ...]] = ()
    """Unknown variables with one of these prefixes are reported as likely typing errors."""
    insecure: ClassVar[tuple[Insecure, ...]] = ()
    """Rules that `manage.py check --deploy` applies to these settings."""

    def conflicts(self) -> Iterator[Problem]:
        """Yield the problems of variables that contradict each other."""
        yield from ()

    def storages(self) -> dict[str, Any]:
        return {}

    @classmethod
    def load(cls, given: Mapping[str, Any] | None = None) -> tuple[Self, list[Problem]]:
        """Read the environment, or the values `given` instead, by the names of the variables.
        Return the settings and the problems of the variables."""
        source = os.environ if given is None else given
        values = {name: source[name] for name in cls.names() if name in source}
        problems: list[Problem] = []
        try:
            settings = cls.model_validate(values)
        except ValidationError as error:
            problems = [each for details in error.errors() for each in cls._problems(details)]
            settings = cls.model_validate(values | {problem.name: "" for problem in problems})
        return settings, [*problems, *settings.conflicts()]

    @classmethod
    def variables(cls) -> list[Variable]:
        """Describe the variables, in the order of their declaration."""
        meanings = _meanings(cls)
        return [
            Variable(variable_name(name, field), _kind(field), _default(field), meanings[name])
            for name, field in cls.model_fields.items()
        ]

    @classmethod
    def names(cls) -> list[str]:
        return [variable_name(name, field) for name, field in cls.model_fields.items()]

    @field_validator("*", mode="wrap")
    @classmethod
    def _default_if_blank(cls, value: Any, handler: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return handler(value)
        if value.strip():
            return handler(value.strip())
        field = cls.model_fields[str(info.field_name)]
        return field.get_default(call_default_factory=True, validated_data=info.data)

    @classmethod
    def _problems(cls, error: ErrorDetails) -> Iterator[Problem]:
        """Yield a problem for each message of a Rule; for other errors, name the expected value."""
        if error["type"] == "default_factory_not_called":  # because another field is invalid
            return
        name = str(error["loc"][0])
        if error["type"] == "value_error":
            for message in error["ctx"]["error"].args:
                yield Problem(name, message)
            return
        fields = {variable_name(key, field): field for key, field in cls.model_fields.items()}
        yield Problem(name, f"{error['input']!r} is not {_kind(fields[name])}")


def variable_name(name: str, field: FieldInfo) -> str:
    return str(field.validation_alias or name)


def named_variables(prefix: str) -> Any:
    """Declare a field that holds all variables `<prefix><NAME>` in a dict by NAME."""
    return Field(
        default_factory=lambda: {
            name.removeprefix(prefix): value.strip()
            for name, value in os.environ.items()
            if name.startswith(prefix)
        },
        validate_default=True,
        validation_alias=prefix + ANY_NAME,
    )


def _meanings(cls: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each field, by its name. Pydantic would read the source of each
    class whenever a process starts."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    meanings = dict.fromkeys(cls.model_fields, "")
    for field, below in pairwise(getattr(tree, "body", [])):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                meanings[name] = " ".join(text.split())
    return meanings


def _default(field: FieldInfo) -> str:
    if field.examples or field.default_factory:
        return str((field.examples or [""])[0])
    if isinstance(field.default, bool):
        return "yes" if field.default else "no"
    if isinstance(field.default, list | dict):
        return ",".join(field.default)
    return str(field.default)


def _kind(field: FieldInfo) -> str:
    """Return a description of the values that the field accepts, such as `yes or no`."""
    for item in field.metadata:
        if isinstance(item, Rule):
            return item.kind
    if get_origin(field.annotation) is Literal:
        return " or ".join(get_args(field.annotation))
    if field.annotation is bool:
        return "yes or no"
    if field.annotation not in (int, float):
        return "text"
    number = "a whole number" if field.annotation is int else "a number"
    bounds = {
        name: getattr(item, name)
        for item in field.metadata
        for name in ("gt", "ge", "le")
        if hasattr(item, name)
    }
    least = bounds["gt"] + 1 if "gt" in bounds else bounds.get("ge", 0)
    most = bounds.get("le")
    limits = f"{least:g} or more" if most is None else f"{least} to {most}"
    return f"{number}, {limits}"
