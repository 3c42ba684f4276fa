"""Template filters for the texts of alerts. They take an Alert, or the payload of its event."""

from collections.abc import Mapping
from typing import Any

from django import template

from tailrace.domains.protection.alerts import texts
from tailrace.domains.protection.models import Alert

register = template.Library()


def _field(alert: Alert | Mapping[str, Any], name: str, default: Any) -> Any:
    if isinstance(alert, Alert):
        return getattr(alert, name)
    return alert.get(name, default)


@register.filter
def alert_title(alert: Alert | Mapping[str, Any]) -> str:
    """Return the title, in one line."""
    return texts.text_of(_field(alert, "kind", "")).title


@register.filter
def alert_names(alert: Alert | Mapping[str, Any]) -> str:
    """Return the names in the alert, such as leaks, or an empty string."""
    return texts.names_of(_field(alert, "kind", ""), _field(alert, "details", {}))


@register.filter
def alert_to_do(alert: Alert | Mapping[str, Any]) -> str:
    """Return what the user should do."""
    return texts.text_of(_field(alert, "kind", "")).to_do


@register.filter
def alert_path(alert: Alert | Mapping[str, Any]) -> str:
    """Return the path of the page where the user can do it."""
    return texts.text_of(_field(alert, "kind", "")).path


@register.filter
def severity_words(severity: int) -> str:
    return texts.severity_words(severity)


@register.filter
def severity_style(severity: int) -> str:
    """Return the CSS class of the severity's label."""
    return {2: "tr-paused", 3: "tr-failed"}.get(severity, "")
