"""Refuse unknown keys of the models within a payload.

Pydantic ignores such keys, so a typing error in the name of an optional field would go unnoticed.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from tailrace.environment.suggest import did_you_mean

Path = tuple[str | int, ...]


def refuse_unknown_keys(model: BaseModel, given: Any) -> None:
    """Raise ValidationError if a model within this one was given a key that it does not declare.
    Models that configure `extra`, or have a validator that runs before the fields', are skipped.
    `given` is the value from which the model was created."""
    errors = [
        InitErrorDetails(
            type=PydanticCustomError(
                "extra_forbidden",
                "Extra inputs are not permitted{hint}",  # pydantic's text for the outermost model
                {"hint": did_you_mean(str(path[-1]), known_keys)},
            ),
            loc=path,
            input=value,
        )
        for path, value, known_keys in _unknown_keys_in_fields(model, given, ())
    ]
    if errors:
        raise ValidationError.from_exception_data(type(model).__name__, errors)


UnknownKey = tuple[Path, Any, frozenset[str]]
"""The path of an unknown key, its value, and the known keys of its model."""


def _unknown_keys_in_fields(model: BaseModel, given: Any, path: Path) -> Iterator[UnknownKey]:
    """Yield the unknown keys of the models in the fields of this model."""
    if isinstance(model, RootModel):
        yield from _unknown_keys(model.root, given, path)
        return
    if not isinstance(given, Mapping):
        return
    for name in _fields_with_models(type(model)):
        key = next((key for key in (name, *_aliases(type(model), name)) if key in given), None)
        if key is not None:
            yield from _unknown_keys(getattr(model, name), given[key], (*path, key))


def _unknown_keys(value: Any, given: Any, path: Path) -> Iterator[UnknownKey]:
    """Yield the unknown keys of the models in a value, which may itself be a model."""
    if isinstance(value, BaseModel):
        if isinstance(given, Mapping) and _ignores_unknown_keys(type(value)):
            known = _known_keys(type(value))
            yield from (((*path, str(key)), given[key], known) for key in given if key not in known)
        yield from _unknown_keys_in_fields(value, given, path)
    elif isinstance(value, Mapping) and isinstance(given, Mapping):
        for key in value.keys() & given.keys():
            yield from _unknown_keys(value[key], given[key], (*path, key))
    elif isinstance(value, list | tuple) and isinstance(given, list | tuple):
        for index, (item, original) in enumerate(zip(value, given, strict=False)):
            yield from _unknown_keys(item, original, (*path, index))


@cache
def _fields_with_models(cls: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of the fields that may contain a model. A flat payload has none."""
    return tuple(
        name for name, field in cls.model_fields.items() if _mentions_model(field.annotation)
    )


def _mentions_model(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    inner = get_args(getattr(annotation, "__value__", annotation))
    return any(map(_mentions_model, inner))


@cache
def _ignores_unknown_keys(cls: type[BaseModel]) -> bool:
    validators = cls.__pydantic_decorators__.model_validators.values()
    return not ("extra" in cls.model_config or issubclass(cls, RootModel)) and all(
        validator.info.mode == "after" for validator in validators
    )


@cache
def _known_keys(cls: type[BaseModel]) -> frozenset[str]:
    return frozenset(key for name in cls.model_fields for key in (name, *_aliases(cls, name)))


def _aliases(cls: type[BaseModel], name: str) -> Iterator[str]:
    alias = cls.model_fields[name].validation_alias
    for each in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        if isinstance(each, AliasPath):
            yield str(each.path[0])
        elif each is not None:
            yield each
