"""The API, assembled from the `api` modules of the apps.

A module declares `routers`, a dict of ninja's Routers by path below /api; `scopes`, a dict of the
meanings of its token scopes; and optionally `webhooks`, a function that returns the WebhookMessages
that the app sends, and `errors`, a dict of functions that turn an exception into a Problem.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import ValidationError, ValidationErrorContext
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from ninja.parser import Parser

from tailrace.environment.discovery import import_modules
from tailrace.web.api import idempotency, problems
from tailrace.web.api.auth import ApiRequest
from tailrace.web.api.description.examples import Examples, examples_of
from tailrace.web.api.description.openapi import Document
from tailrace.web.api.description.webhook_messages import WebhookMessage
from tailrace.web.api.requests.request_body import check_query


class StrictParser(Parser):
    """Returns the body that tailrace.web.api.auth has parsed; refuses query parameters that
    PostgreSQL cannot store."""

    def parse_body(self, request: HttpRequest) -> Any:
        return cast(ApiRequest, request).parsed

    def parse_querydict(self, data: Any, list_fields: list[str], request: HttpRequest) -> Any:
        check_query(dict(data))
        return super().parse_querydict(data, list_fields, request)


class Site(NinjaAPI):
    """Ninja's API with webhooks and examples."""

    webhooks: list[Callable[[], Iterable[WebhookMessage]]]
    examples: Examples

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Return the errors of a request; the `loc` of each is its source and its path.

        Ninja's own method names the items of a list instead of the list parameter.
        """
        errors: list[dict[str, Any]] = []
        for context in error_contexts:
            source = context.model.__ninja_param_source__
            names = context.model.__ninja_flatten_map_reverse__
            for error in context.pydantic_validation_error.errors(include_url=False):
                location = error["loc"]
                parts = (location[:end] for end in range(len(location), 0, -1))
                path = next((names[part] for part in parts if part in names), location)
                errors.append({**error, "loc": (source, *path)})
        return ValidationError(errors)

    def get_openapi_operation_id(self, operation: Operation) -> str:
        module = operation.view_func.__module__.rpartition(".")[2]
        return f"{module}_{operation.view_func.__name__}"

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        """Return the document. It is made once, since that is slow and anybody may request it."""
        return self._document

    @cached_property
    def _document(self) -> OpenAPISchema:
        return Document(self, self.get_root_path({}), self.webhooks, self.examples)


api = Site(
    title="Tailrace",
    version="1.0.0",
    description="Subscriptions, notifications, events and jobs. See docs/reference/api.md.",
    servers=[{"url": settings.PUBLIC_URL, "description": "this server"}],
    urls_namespace="api",
    docs_url=None,  # tailrace.web.api.docs
    docs_decorator=require_safe,
    parser=StrictParser(),
)
api.webhooks, api.examples = [], {}
problems.register(api)
api.add_decorator(idempotency.once_for_its_key)
for module in import_modules("api"):
    api.webhooks += [module.webhooks] if hasattr(module, "webhooks") else []
    api.examples |= examples_of(module)
    problems.register_errors(api, getattr(module, "errors", {}))
    for address, router in getattr(module, "routers", {}).items():
        api.add_router(address, router, tags=[address.strip("/")])
