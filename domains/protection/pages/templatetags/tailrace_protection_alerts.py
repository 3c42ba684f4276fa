"""Template filters for the texts of alerts. They take an Alert, or the payload of its event."""

from collections.abc import Mapping
from typing import Any

from django import template

from tailrace.domains.protection.alerts import texts
from tailrace.domains.protection.models import Alert

register = template.Library()
register.filter("severity_words", texts.severity_words)


def _fields(alert: Alert | Mapping[str, Any]) -> Mapping[str, Any]:
    return vars(alert) if isinstance(alert, Alert) else alert


@register.filter
def alert_text(alert: Alert | Mapping[str, Any]) -> texts.AlertText:
    return texts.text_of(_fields(alert).get("kind", ""))


@register.filter
def alert_names(alert: Alert | Mapping[str, Any]) -> str:
    """Return the names in the alert, such as leaks, or an empty string."""
    fields = _fields(alert)
    return texts.names_of(fields.get("kind", ""), fields.get("details", {}))


@register.filter
def alert_to_do(alert: Alert | Mapping[str, Any]) -> str:
    fields = _fields(alert)
    return texts.to_do_of(fields.get("kind", ""), fields.get("details", {}))


@register.filter
def severity_style(severity: int) -> str:
    """Return the CSS class of the severity's label."""
    return {2: "tr-paused", 3: "tr-failed"}.get(severity, "")
