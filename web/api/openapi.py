"""The OpenAPI document, with what ninja leaves out: problems, permissions and headers."""

from typing import Any

from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from web.api.auth import Needs
from web.api.problems import CONTENT_TYPE, ProblemOut

PROBLEMS = (400, 401, 403, 404, 405, 409, 410, 411, 413, 415, 422, 429, 500, 503)
SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token (`tr_…`) created by `manage.py make_token`, within its scopes.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "sessionid",
        "description": "A signed-in browser; changes need `X-CSRFToken` too.",
    },
}
HEADERS = {
    "RateLimit": "`r` requests are left; the limit is full again in `t` seconds",
    "RateLimit-Policy": "`q` requests at once, refilled within `w` seconds",
}


class Document(OpenAPISchema):
    """Ninja's document, with the permissions, problems and headers of each operation."""

    def operation_details(self, operation: Operation) -> dict[str, Any]:
        details = dict(super().operation_details(operation))
        for auth in operation.auth_callbacks:
            if isinstance(auth, Needs):
                rights = [f"scope `{auth.scope}`"]
                rights += [f"permission `{name}`" for name in auth.permissions]
                description = details.get("description", "")
                details["description"] = f"{description}\n\nNeeds: {', '.join(rights)}.".strip()
                if auth.cost != 1:
                    details["description"] += f" Counts as {auth.cost:g} requests."
                details["security"] = [{"token": [auth.scope]}, {"session": []}]
        headers = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
        for response in details["responses"].values():
            response["headers"] = headers
        for status in PROBLEMS:
            details["responses"].setdefault(status, {"$ref": "#/components/responses/Problem"})
        return details

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
            "headers": {
                name: {"description": meaning, "schema": {"type": "string"}}
                for name, meaning in HEADERS.items()
            },
            "securitySchemes": SECURITY_SCHEMES,
        }
