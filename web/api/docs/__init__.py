"""The documentation pages of the API, made from the OpenAPI document."""
