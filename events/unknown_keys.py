"""Refuse keys that a model within a payload does not declare: pydantic drops them, and with them a
typing error in an optional field."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from tailrace.events.suggest import did_you_mean

Place = tuple[str | int, ...]


def refuse_unknown_keys(model: BaseModel, given: Any) -> None:
    """Raise ValidationError if a model within this one was given a key that it does not declare,
    unless it says itself what it does with those (`extra`), or validates what it is given before
    its fields are known.

    `given` is the value that the model was made of.
    """
    errors = [
        InitErrorDetails(
            type=PydanticCustomError(
                "extra_forbidden",
                "Extra inputs are not permitted{hint}",  # as pydantic says it of the outermost
                {"hint": did_you_mean(str(place[-1]), known)},
            ),
            loc=place,
            input=value,
        )
        for place, value, known in _unknown_within(model, given, ())
    ]
    if errors:
        raise ValidationError.from_exception_data(type(model).__name__, errors)


Unknown = tuple[Place, Any, frozenset[str]]
"""The place of an unknown key, its value, and the keys that are known there."""


def _unknown_within(model: BaseModel, given: Any, place: Place) -> Iterator[Unknown]:
    """Yield what is unknown to the models in the fields of this one."""
    if isinstance(model, RootModel):
        yield from _unknown(model.root, given, place)
        return
    if not isinstance(given, Mapping):
        return
    for name in _fields_with_models(type(model)):
        key = next((key for key in (name, *_aliases(type(model), name)) if key in given), None)
        if key is not None:
            yield from _unknown(getattr(model, name), given[key], (*place, key))


def _unknown(value: Any, given: Any, place: Place) -> Iterator[Unknown]:
    """Yield what is unknown to the models in a value, the value itself included."""
    if isinstance(value, BaseModel):
        if isinstance(given, Mapping) and _is_careless(type(value)):
            known = _known(type(value))
            yield from (
                ((*place, str(key)), given[key], known) for key in given if key not in known
            )
        yield from _unknown_within(value, given, place)
    elif isinstance(value, Mapping) and isinstance(given, Mapping):
        for key in value.keys() & given.keys():
            yield from _unknown(value[key], given[key], (*place, key))
    elif isinstance(value, list | tuple) and isinstance(given, list | tuple):
        for index, (item, original) in enumerate(zip(value, given, strict=False)):
            yield from _unknown(item, original, (*place, index))


@cache
def _fields_with_models(cls: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields that may contain a model; a flat payload has none, and costs nothing."""
    return tuple(
        name for name, field in cls.model_fields.items() if _mentions_model(field.annotation)
    )


def _mentions_model(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    inner = get_args(getattr(annotation, "__value__", annotation))
    return any(map(_mentions_model, inner))


@cache
def _is_careless(cls: type[BaseModel]) -> bool:
    validators = cls.__pydantic_decorators__.model_validators.values()
    return not ("extra" in cls.model_config or issubclass(cls, RootModel)) and all(
        validator.info.mode == "after" for validator in validators
    )


@cache
def _known(cls: type[BaseModel]) -> frozenset[str]:
    return frozenset(key for name in cls.model_fields for key in (name, *_aliases(cls, name)))


def _aliases(cls: type[BaseModel], name: str) -> Iterator[str]:
    alias = cls.model_fields[name].validation_alias
    for each in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        if isinstance(each, AliasPath):
            yield str(each.path[0])
        elif each is not None:
            yield each
