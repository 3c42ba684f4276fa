"""Base classes of the schemas of requests and responses."""

from pydantic import BaseModel, ConfigDict


class In(BaseModel):
    """A JSON body: no unknown fields, and no conversion of types (1 is not true)."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Out(BaseModel):
    """A response; the strings under its fields are their descriptions in the OpenAPI document."""

    model_config = ConfigDict(from_attributes=True, use_attribute_docstrings=True)
