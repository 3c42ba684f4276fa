"""The API, put together from the apps.

An app's `api` module declares `routers`, a dict from the address under /api to ninja's Router, and
`scopes`, a dict from each scope of its tokens to what the scope allows.
"""

from functools import cached_property, wraps
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from ninja import NinjaAPI, Swagger
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from ninja.parser import Parser

from events.discovery import import_modules
from web.api import problems
from web.api.auth import ApiRequest
from web.api.openapi import Document
from web.api.request_body import check_storable

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


class StrictParser(Parser):
    """Returns the body that web.api.auth parsed; refuses queries that PostgreSQL cannot store."""

    def parse_body(self, request: HttpRequest) -> Any:
        return cast(ApiRequest, request).parsed

    def parse_querydict(self, data: Any, list_fields: list[str], request: HttpRequest) -> Any:
        check_storable(dict(data))
        return super().parse_querydict(data, list_fields, request)


class Site(NinjaAPI):
    """Ninja's API; each response has the headers of the caller's rate limit."""

    def create_temporal_response(self, request: HttpRequest) -> HttpResponse:
        response = super().create_temporal_response(request)
        for name, value in getattr(request, "rate_limit_headers", {}).items():
            response[name] = value
        return response

    def get_openapi_operation_id(self, operation: Operation) -> str:
        module = operation.view_func.__module__.rpartition(".")[2]
        return f"{module}_{operation.view_func.__name__}"

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        """Return the document. It is made once: that takes long, and everybody may ask for it."""
        return self._document

    @cached_property
    def _document(self) -> OpenAPISchema:
        return Document(self, self.get_root_path({}))


def _public_docs(view: Any) -> Any:
    """Show the page to everybody, with a policy that allows nothing from other sites."""

    @require_safe
    @wraps(view.func)
    def wrapped(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = view(request, **kwargs)
        response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return response

    return wrapped


api = Site(
    title="Tailrace",
    version="1.0.0",
    description="Subscriptions, notifications and events. See docs/api.md.",
    urls_namespace="api",
    docs=Swagger({"validatorUrl": None, "displayRequestDuration": True}),
    docs_decorator=_public_docs,
    parser=StrictParser(),
)
problems.register(api)
for module in import_modules("api"):
    for address, router in getattr(module, "routers", {}).items():
        api.add_router(address, router, tags=[address.strip("/")])
