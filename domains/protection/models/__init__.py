from domains.protection.models.alert import Alert, AlertPause, Severity

__all__ = ["Alert", "AlertPause", "Severity"]
