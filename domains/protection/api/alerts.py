"""Alerts in the API."""

from django.http import HttpRequest
from ninja import Query, Router

from tailrace.domains.protection.alerts.texts import names_of, severity_words, text_of, to_do_of
from tailrace.domains.protection.api.schemas import AlertOut
from tailrace.domains.protection.models import Alert
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, PageParams, newest_first

READ = Needs("protection:read")
router = Router()


@router.get("", auth=READ, response=Page[AlertOut], summary="List your alerts")
def list_alerts(request: HttpRequest, query: Query[PageParams]) -> Page[AlertOut]:
    """Newest first."""
    return newest_first(Alert.objects.filter(user=caller(request).user), query, _alert)


def _alert(row: Alert) -> AlertOut:
    text = text_of(row.kind)
    return AlertOut.of(
        row,
        severity=severity_words(row.severity),
        title=text.title,
        to_do=to_do_of(row.kind, row.details),
        names=names_of(row.kind, row.details),
    )
