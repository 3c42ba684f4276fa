"""The OpenAPI document of ninja, extended by problems, permissions, headers and webhooks."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from tailrace.web.api import idempotency
from tailrace.web.api.auth import Needs
from tailrace.web.api.description.examples import Examples, add_example
from tailrace.web.api.description.webhook_messages import REF, WebhookMessage, path_item
from tailrace.web.api.faults import IDEMPOTENCY_KEY as KEY_HEADER
from tailrace.web.api.problems import CONTENT_TYPE, ProblemOut

PROBLEMS = (400, 401, 403, 404, 405, 409, 410, 411, 413, 415, 422, 429, 500, 503)
SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API token (`tr_…`); its scopes limit the operations.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "sessionid",
        "description": "The session of a signed-in browser; changes also need `X-CSRFToken`.",
    },
}
IDEMPOTENCY_KEY = {
    "in": "header",
    "name": KEY_HEADER,
    "required": False,
    "description": idempotency.DESCRIPTION,
    "schema": idempotency.SCHEMA,
    "example": "order-4711",
}
HEADERS = {
    "RateLimit": "`r` requests are left; all are available again in `t` seconds",
    "RateLimit-Policy": "`q` requests may come at once; they are refilled within `w` seconds",
}


class Document(OpenAPISchema):
    """Ninja's document with the permissions, problems and headers of each operation, and with the
    webhook messages that Tailrace sends."""

    def __init__(
        self,
        api: NinjaAPI,
        prefix: str,
        webhooks: Iterable[Callable[[], Iterable[WebhookMessage]]],
        examples: Examples,
    ) -> None:
        self.examples = examples
        super().__init__(api, prefix)
        self["webhooks"] = {}
        for messages in webhooks:
            for message in messages():
                self.add_schema_definitions(dict(message.schemas))
                self["webhooks"][message.name] = path_item(message)

    def operation_details(self, operation: Operation) -> dict[str, Any]:
        details = dict(super().operation_details(operation))
        for content in details.get("requestBody", {}).get("content", {}).values():
            content["schema"] = self._with_shared_parts(content["schema"])
        for auth in operation.auth_callbacks:
            if isinstance(auth, Needs):
                rights = [f"scope `{auth.scope}`"]
                rights += [f"permission `{name}`" for name in auth.permissions]
                description = details.get("description", "")
                details["description"] = f"{description}\n\nNeeds: {', '.join(rights)}.".strip()
                if auth.cost != 1:
                    details["description"] += f" Counts as {auth.cost:g} requests."
                details["security"] = [{"token": [auth.scope]}, {"session": []}]
        if "POST" in operation.methods and not idempotency.has_own_key(operation.view_func):
            details["parameters"] = [
                *details.get("parameters", []),
                {"$ref": "#/components/parameters/IdempotencyKey"},
            ]
        headers = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
        for response in details["responses"].values():
            response["headers"] = headers
        for status in PROBLEMS:
            details["responses"].setdefault(status, {"$ref": "#/components/responses/Problem"})
        if example := self.examples.get(details["operationId"]):
            add_example(details, example)
        return details

    def _with_shared_parts(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Move the `$defs` of an operation's schema to the document's schemas; return the rest."""
        if "$defs" not in schema:
            return schema
        whole: dict[str, Any] = json.loads(json.dumps(schema).replace("#/$defs/", REF))
        self.add_schema_definitions(whole.pop("$defs"))
        return whole

    def add_schema_definitions(self, definitions: dict[str, Any]) -> None:
        """Add schemas. Raises ValueError if there is a different schema with the same name."""
        for name, schema in definitions.items():
            if self.schemas.get(name, schema) != schema:
                raise ValueError(f"two schemas of the API are called {name}: rename one of them")
        super().add_schema_definitions(definitions)

    def get_components(self) -> dict[str, Any]:
        schema = ProblemOut.model_json_schema(
            ref_template="#/components/schemas/{model}", mode="serialization"
        )
        self.add_schema_definitions({**schema.pop("$defs", {}), "ProblemOut": schema})
        content = {"schema": {"$ref": "#/components/schemas/ProblemOut"}}
        problem = {"description": ProblemOut.__doc__, "content": {CONTENT_TYPE: content}}
        return {
            **super().get_components(),
            "responses": {"Problem": problem},
            "parameters": {"IdempotencyKey": IDEMPOTENCY_KEY},
            "headers": {
                name: {"description": meaning, "schema": {"type": "string"}}
                for name, meaning in HEADERS.items()
            },
            "securitySchemes": SECURITY_SCHEMES,
        }
