"""Published records in the API: show, withdraw."""

from django.conf import settings
from django.http import HttpRequest
from ninja import Router, Status

from tailrace.domains.records.api.depositions import deposition_out
from tailrace.domains.records.api.schemas import DepositionOut, ReasonIn, RecordOut
from tailrace.domains.records.depositions import decisions
from tailrace.domains.records.models.visibility import visible_records
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.problems import Problem, find_row, not_found

READ, WRITE = Needs("records:read"), Needs("records:deposit")
router = Router()


@router.get("/{int:id}", auth=READ, response=RecordOut, summary="Get one record")
def get_record(request: HttpRequest, id: int) -> RecordOut:
    """You can get open records and your own records."""
    record = find_row(visible_records(caller(request).user), id, "record")
    return RecordOut.of(record, url=f"{settings.PUBLIC_URL}/api/records/{record.pk}")


@router.post(
    "/{int:id}/withdraw", auth=WRITE, response={202: DepositionOut}, summary="Withdraw a record"
)
def withdraw_record(request: HttpRequest, id: int, body: ReasonIn) -> Status[DepositionOut]:
    """You can withdraw your own records; curators can withdraw any record.

    Jobs remove the record from the search. Its title stays visible.
    """
    user = caller(request).user
    record = find_row(visible_records(user), id, "record")
    if not decisions.may_withdraw(user, record):
        raise not_found("record")
    try:
        return Status(202, deposition_out(decisions.withdraw(record, user, body.reason)))
    except decisions.DecisionRefused as error:
        raise Problem(409, str(error)) from None
