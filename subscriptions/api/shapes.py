"""shapes: what all bodies have in common."""

from pydantic import BaseModel, ConfigDict


class In(BaseModel):
    """What a caller sends as JSON: nothing but what is named, and no 1 for true."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Out(BaseModel):
    """What a caller gets; the lines under the fields stand in the API's document."""

    model_config = ConfigDict(from_attributes=True, use_attribute_docstrings=True)
