"""The service's reports about sent texts. A phone number that cannot get texts is removed.

An attacker may record a signed report and send it again. So the callback URL of each text contains
the time when the text was sent, and a number that was entered after this time is kept.
"""

import base64
import hashlib
import hmac
from datetime import UTC, datetime

from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from tailrace.subscriptions.channels.sms import service
from tailrace.subscriptions.models import Preferences

MAX_BYTES = 16_000
"""The maximum size of a report; the service sends about 500 bytes."""
NO_TEXTS = frozenset({str(service.OPTED_OUT), "21211", "21614", "30005", "30006"})
"""Error codes: opted out, invalid number, not a mobile number, unknown number, landline."""


def signature(url: str, form: QueryDict) -> str:
    """Return the X-Twilio-Signature of a report: base64 of HMAC-SHA1 over the URL and the sorted
    parameters, with the account's token as the key."""
    parts = [name + value for name in sorted(form) for value in sorted(set(form.getlist(name)))]
    text = url + "".join(parts)
    digest = hmac.new(settings.SMS_TOKEN.encode(), text.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


@csrf_exempt  # the signature authenticates the sender
@require_POST
def sms_status(request: HttpRequest) -> HttpResponse:
    """Receive a report. 403: the signature is wrong; 404: text messages are not set up."""
    if not settings.SMS_URL or not settings.SMS_TOKEN:
        return _text("Text messages are not set up.", 404)
    length = int(request.META.get("CONTENT_LENGTH") or 0)
    if length > MAX_BYTES:
        return _text(f"The body has {length} bytes; the limit is {MAX_BYTES}.", 413)
    if not length and "Transfer-Encoding" in request.headers:
        return _text("Send the body with a Content-Length.", 411)
    received = request.headers.get("X-Twilio-Signature", "").encode()
    query = request.META.get("QUERY_STRING", "")
    expected = signature(service.status_url(query), request.POST)
    if not hmac.compare_digest(received, expected.encode()):
        return _text("X-Twilio-Signature does not match: check SMS_TOKEN and PUBLIC_URL.", 403)
    phone, sent_at = request.POST.get("To", ""), _sent_at(request)
    if phone and sent_at and request.POST.get("ErrorCode", "") in NO_TEXTS:
        # It may be illegal to send more. A user who wants texts can enter the number again.
        preferences = Preferences.objects.filter(phone=phone, phone_since__lte=sent_at)
        preferences.update(phone="", confirmed_phone="")
    return HttpResponse(status=204)


def _sent_at(request: HttpRequest) -> datetime | None:
    """Return when the reported text was sent, from the request's URL; None if it is missing."""
    try:
        return datetime.fromtimestamp(float(request.GET.get(service.SENT_AT, "")), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _text(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", "text/plain", status)
