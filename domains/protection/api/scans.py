"""Scans on request in the API."""

from django.http import HttpRequest
from ninja import Router, Status

from tailrace.domains.protection.api.schemas import ScanIn, ScanOut
from tailrace.domains.protection.services.scanning.requests import ScanRefused, request_scan
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.problems import Problem

WRITE = Needs("protection:write", cost=5)
router = Router()


@router.post("", auth=WRITE, response={202: ScanOut}, summary="Scan now")
def scan_now(request: HttpRequest, body: ScanIn) -> Status[ScanOut]:
    """Only scans of your plan, and at most PROTECTION_SCANS_PER_DAY times a day."""
    try:
        job = request_scan(caller(request).user.pk, body.handler)
    except ScanRefused as error:
        raise Problem(409, str(error)) from None
    return Status(202, ScanOut(job=job))
