"""Validate the payloads of new jobs: keys that the handler's model does not declare are refused."""

from collections.abc import Mapping
from functools import cache
from types import new_class
from typing import Any

from pydantic import BaseModel, RootModel

from tailrace.events.publishing.unknown_keys import refuse_unknown_keys


@cache
def strict_model(model: type[BaseModel]) -> type[BaseModel]:
    """Return a subclass of the model that refuses undeclared keys, or the model itself if it
    configures `extra`. Workers ignore undeclared keys of stored payloads, so that during a
    deployment the old code can read payloads of the new code."""
    if "extra" in model.model_config or issubclass(model, RootModel):
        return model
    names = {name: getattr(model, name) for name in ("__module__", "__qualname__", "__doc__")}
    # Pydantic reads its configuration from the keyword arguments of the class statement.
    return new_class(
        model.__name__, (model,), {"extra": "forbid"}, lambda space: space.update(names)
    )


def read(model: type[BaseModel], payload: BaseModel | Mapping[str, Any] | None) -> BaseModel:
    """Return the payload as an instance of the model. None counts as an empty payload. Keys are
    field names, as they are stored, or aliases. Raises ValidationError."""
    if isinstance(payload, model):
        return payload
    given = {} if payload is None else payload
    result = strict_model(model).model_validate(given, by_alias=True, by_name=True)
    refuse_unknown_keys(result, given)
    return result
