"""document: the OpenAPI document, with what ninja leaves out: problems, rights and headers."""

from typing import Any

from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from subscriptions.api.gate import Needs
from subscriptions.api.problems import CONTENT_TYPE, ProblemOut

PROBLEMS = (400, 401, 403, 404, 405, 409, 411, 413, 415, 422, 429, 500, 503)
SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token (`tr_…`), made by `manage.py make_token`, within its scopes.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "sessionid",
        "description": "A logged-in browser; what changes something needs `X-CSRFToken` too.",
    },
}


HEADERS = {
    "RateLimit": "what is left: `r` requests now, all of them again in `t` seconds",
    "RateLimit-Policy": "`q` requests at once, refilled within `w` seconds",
}


class Document(OpenAPISchema):
    """Ninja's document; each operation says who may ask, and with which problems it answers."""

    def operation_details(self, operation: Operation) -> dict[str, Any]:
        details = dict(super().operation_details(operation))
        for gate in operation.auth_callbacks:
            if isinstance(gate, Needs):
                rights = [f"scope `{gate.scope}`"]
                rights += [f"permission `{name}`" for name in gate.permissions]
                said = details.get("description", "")
                details["description"] = f"{said}\n\nNeeds: {', '.join(rights)}.".strip()
                details["security"] = [{"token": [gate.scope]}, {"session": []}]
        for answer in details["responses"].values():
            answer["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
        for status in PROBLEMS:
            details["responses"].setdefault(status, {"$ref": "#/components/responses/Problem"})
        return details

    def get_components(self) -> dict[str, Any]:
        schema = ProblemOut.model_json_schema(
            ref_template="#/components/schemas/{model}", mode="serialization"
        )
        self.add_schema_definitions({**schema.pop("$defs", {}), "ProblemOut": schema})
        return {
            **super().get_components(),
            "responses": {"Problem": _problem()},
            "headers": {
                name: {"description": meaning, "schema": {"type": "string"}}
                for name, meaning in HEADERS.items()
            },
            "securitySchemes": SECURITY_SCHEMES,
        }


def _problem() -> dict[str, Any]:
    content = {"schema": {"$ref": "#/components/schemas/ProblemOut"}}
    return {"description": ProblemOut.__doc__, "content": {CONTENT_TYPE: content}}
