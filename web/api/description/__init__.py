"""The OpenAPI document, with examples of operations and messages of webhooks."""
