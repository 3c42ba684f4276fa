"""The pages of the API's documentation, made from the OpenAPI document."""
