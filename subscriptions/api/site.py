"""site: the API put together, and its OpenAPI document.

An app that has a part of the API brings it in its `api.py`, as `routers`: a dict from the address
under /api to ninja's Router. Its scopes are offered in `ready` (subscriptions.tokens.offer).
"""

from collections.abc import Iterator
from functools import wraps
from importlib import import_module
from typing import Any, cast

from django.apps import apps
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import module_has_submodule
from django.views.decorators.http import require_safe
from ninja import NinjaAPI, Router, Swagger
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from ninja.parser import Parser

from subscriptions.api import (
    blocks,
    endpoints,
    events,
    feeds,
    inbox,
    preferences,
    problems,
    subscriptions,
)
from subscriptions.api.bodies import check_storable
from subscriptions.api.document import Document
from subscriptions.api.gate import ApiRequest

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


class StrictParser(Parser):
    """Gives the body as the gate has parsed it, and queries that PostgreSQL can store."""

    def parse_body(self, request: HttpRequest) -> Any:
        return cast(ApiRequest, request).parsed

    def parse_querydict(self, data: Any, list_fields: list[str], request: HttpRequest) -> Any:
        check_storable(dict(data))
        return super().parse_querydict(data, list_fields, request)


class Site(NinjaAPI):
    """Ninja's API, which says on each answer what is left of the caller's budget."""

    def create_temporal_response(self, request: HttpRequest) -> HttpResponse:
        answer = super().create_temporal_response(request)
        for name, value in getattr(request, "budget", {}).items():
            answer[name] = value
        return answer

    def get_openapi_operation_id(self, operation: Operation) -> str:
        module = operation.view_func.__module__.rpartition(".")[2]
        return f"{module}_{operation.view_func.__name__}"

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        return Document(self, self.get_root_path({}))


def _open(view: Any) -> Any:
    """Let anybody read the page, and nothing on it be fetched from elsewhere."""

    @require_safe
    @wraps(view.func)
    def guarded(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        answer: HttpResponse = view(request, **kwargs)
        answer["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return answer

    return guarded


def _of_other_apps() -> Iterator[tuple[str, Router]]:
    for app in apps.get_app_configs():
        if app.module and app.name != "subscriptions" and module_has_submodule(app.module, "api"):
            yield from getattr(import_module(f"{app.name}.api"), "routers", {}).items()


api = Site(
    title="Tailrace",
    version="1.0.0",
    description="Who hears what, what they were told, and events in and out. See docs/api.md.",
    urls_namespace="api",
    docs=Swagger({"validatorUrl": None, "displayRequestDuration": True}),
    docs_decorator=_open,
    parser=StrictParser(),
)
problems.register(api)
api.add_router("/subscriptions", subscriptions.router, tags=["subscriptions"])
api.add_router("/blocks", blocks.router, tags=["blocks"])
api.add_router("/preferences", preferences.router, tags=["preferences"])
api.add_router("/inbox", inbox.router, tags=["inbox"])
api.add_router("/feeds", feeds.router, tags=["feeds"])
api.add_router("/endpoints", endpoints.router, tags=["endpoints"])
api.add_router("/events", events.router, tags=["events"])
for _address, _router in _of_other_apps():
    api.add_router(_address, _router, tags=[_address.strip("/")])
