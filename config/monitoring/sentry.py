"""Error reports to Sentry, when SENTRY_DSN is set. Only the fields in the lists below are sent: no
payload, header, cookie, query string, local variable, log line or SQL statement. Messages of
exceptions are sent only for JOBS_REPORTED_ERRORS."""

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

import structlog
from django.conf import settings

from tailrace.config.monitoring.routes import route_of
from tailrace.jobs.runtime.report import Failure
from tailrace.jobs.runtime.reported_errors import reported_message

if TYPE_CHECKING:
    from sentry_sdk.types import Event, Hint

EVENT_KEYS = frozenset(
    "event_id timestamp level platform logger release environment sdk exception tags contexts "
    "extra request transaction fingerprint".split()
)
FACTS = frozenset(
    "event_id event_type job_id handler queue routing_key attempt max_attempts claim_no final "
    "celery_task_id".split()
)
TRACE = frozenset(["trace_id", "span_id", "parent_span_id", "op"])
FRAME_KEYS = frozenset(
    "filename function module lineno abs_path in_app pre_context context_line post_context".split()
)


def start() -> None:
    if not settings.SENTRY_DSN:
        return
    # Imported here, since sentry_sdk takes 3 MB.
    import sentry_sdk
    from sentry_sdk.integrations.celery import CeleryIntegration
    from sentry_sdk.integrations.django import DjangoIntegration
    from sentry_sdk.integrations.logging import LoggingIntegration

    sentry_sdk.init(
        dsn=settings.SENTRY_DSN,
        integrations=[
            DjangoIntegration(middleware_spans=False, signals_spans=False),
            CeleryIntegration(),
            LoggingIntegration(level=None, event_level=None),
        ],
        before_send=scrub,
        send_default_pii=False,
        include_local_variables=False,
        max_request_body_size="never",
        max_breadcrumbs=0,
        auto_session_tracking=False,
        traces_sample_rate=None,
    )


def report(failure: Failure) -> None:
    """Report a failed attempt. This is a function for JOBS_ERROR_REPORTERS."""
    import sentry_sdk

    with sentry_sdk.new_scope() as scope:
        for key in FACTS:
            value = getattr(failure, key, None)
            if value not in (None, ""):
                scope.set_tag(key, str(value))
        scope.set_tag("queue", failure.handler)
        scope.fingerprint = [failure.handler, failure.error_class]
        scope.set_level("error" if failure.final else "warning")
        scope.capture_exception(failure.exception or RuntimeError(failure.error_class))


def scrub(event: "Event", hint: "Hint") -> "Event":
    """Return a copy of the event with only the fields in the lists above."""
    kept: dict[str, Any] = {key: value for key, value in event.items() if key in EVENT_KEYS}
    bound = structlog.contextvars.get_contextvars()
    facts = {key: str(value) for key, value in bound.items() if key in FACTS}
    kept["tags"] = facts | _only(kept.get("tags"), FACTS)
    kept["extra"] = _only(kept.get("extra"), FACTS)
    kept["contexts"] = {"trace": _only((kept.get("contexts") or {}).get("trace"), TRACE)}
    if "request" in kept:
        kept["request"] = _request(kept["request"])
        kept["transaction"] = urlsplit(kept["request"]["url"]).path
    for value in (kept.get("exception") or {}).get("values", []):
        _clean_exception(value)
    return kept  # type: ignore[return-value]


def _only(values: Any, allowed: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in dict(values or {}).items() if key in allowed}


def _request(request: Any) -> dict[str, Any]:
    parts = urlsplit(str(request.get("url", "")))
    host = parts.netloc.rsplit("@", 1)[-1]
    return {
        "method": request.get("method"),
        "url": urlunsplit((parts.scheme, host, route_of(unquote(parts.path)), "", "")),
    }


def _clean_exception(value: dict[str, Any]) -> None:
    error_class = f"{value.get('module') or 'builtins'}.{value.get('type')}"
    value["value"] = reported_message(error_class, str(value.get("value") or ""))
    value.pop("mechanism", None)
    for frame in (value.get("stacktrace") or {}).get("frames", []):
        for key in set(frame) - FRAME_KEYS:
            del frame[key]
