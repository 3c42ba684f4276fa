"""The handlers, with the JSON Schemas of their payloads."""

from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic.errors import PydanticInvalidForJsonSchema

from tailrace.jobs.handler import Handler
from tailrace.jobs.platform.requests.job_request import all_handlers, permitted_handlers
from tailrace.jobs.runtime.payloads import strict_model
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.jobs.schemas import HandlerOut

router = Router()
READ = Needs("jobs:read")
VIEW_QUEUES = "tailrace_jobs.view_queue"


@router.get("", auth=READ, response=list[HandlerOut], summary="List the handlers")
def list_handlers(request: HttpRequest) -> list[HandlerOut]:
    """With the permission `tailrace_jobs.view_queue`: all handlers. Otherwise: the handlers whose
    jobs you may request."""
    api_caller = caller(request)
    permitted = permitted_handlers(api_caller.user)
    handlers = all_handlers() if api_caller.may(VIEW_QUEUES) else permitted
    return [_handler_out(handler, handler in permitted) for handler in handlers]


def _handler_out(handler: Handler, may_request: bool) -> HandlerOut:
    return HandlerOut(
        name=handler.name,
        about=handler.description(),
        takes_payload=handler.Payload is not None,
        payload_schema=_schema(handler),
        request_permission=handler.request_permission,
        may_request=may_request,
        max_attempts=handler.max_attempts,
        priority=handler.priority,
        has_lanes=handler.in_lanes(),
        merge=handler.merge,
    )


def _schema(handler: Handler) -> dict[str, Any] | None:
    try:
        return strict_model(handler.Payload).model_json_schema() if handler.Payload else None
    except PydanticInvalidForJsonSchema:
        return None
