"""What a payload has to be that somebody hands in: what its handler's model declares, no more."""

from collections.abc import Mapping
from functools import cache
from types import new_class
from typing import Any

from pydantic import BaseModel, RootModel

from tailrace.events.unknown_keys import refuse_unknown_keys


@cache
def strict_model(model: type[BaseModel]) -> type[BaseModel]:
    """Return a subclass of the model that refuses keys that it does not declare, or the model
    itself if it says what it does with them.

    Only what is handed in is read by it: a worker leaves out what it does not know, so that during
    a deployment the old code reads payloads of the new code, too.
    """
    if "extra" in model.model_config or issubclass(model, RootModel):
        return model
    names = {
        "__module__": model.__module__,
        "__qualname__": model.__qualname__,
        "__doc__": model.__doc__,
    }
    # Pydantic takes the arguments of a class statement as its configuration.
    return new_class(
        model.__name__, (model,), {"extra": "forbid"}, lambda space: space.update(names)
    )


def read(model: type[BaseModel], payload: BaseModel | Mapping[str, Any] | None) -> BaseModel:
    """Return the payload as an instance of the model, or raise ValidationError; none is an empty
    one. Fields are known by their names, as they are stored, and by their aliases."""
    if isinstance(payload, model):
        return payload
    given = {} if payload is None else payload
    result = strict_model(model).model_validate(given, by_alias=True, by_name=True)
    refuse_unknown_keys(result, given)
    return result
