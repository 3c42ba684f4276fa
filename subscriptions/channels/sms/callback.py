"""What the service reports of a text later: a number that gets no texts is used no more.

A report that is sent again, by whoever recorded it, is signed as well. So each text names in the
address of its reports when it was sent, and a number that was entered after that is kept.
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
"""Of a report; the service sends about 500."""
NO_TEXTS = frozenset({str(service.OPTED_OUT), "21211", "21614", "30005", "30006"})
"""Error codes: opted out, no number, no mobile number, unknown, a landline."""


def signature(url: str, form: QueryDict) -> str:
    """Return what X-Twilio-Signature is of a report: base64 of HMAC-SHA1 over the URL and the
    sorted parameters, with the account's token as the key."""
    parts = [name + value for name in sorted(form) for value in sorted(set(form.getlist(name)))]
    text = url + "".join(parts)
    digest = hmac.new(settings.SMS_TOKEN.encode(), text.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


@csrf_exempt  # the signature proves who sends it
@require_POST
def sms_status(request: HttpRequest) -> HttpResponse:
    """Take a report. 403: it is not the service's; 404: texts are not set up."""
    if not settings.SMS_URL or not settings.SMS_TOKEN:
        return _text("Texts are not set up.", 404)
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
        # It may be illegal to send more; a person who wants texts enters the number again.
        concerned = Preferences.objects.filter(phone=phone, phone_since__lte=sent_at)
        concerned.update(phone="", confirmed_phone="")
    return HttpResponse(status=204)


def _sent_at(request: HttpRequest) -> datetime | None:
    """Return when the text was sent that the report is about; None if its address does not say."""
    try:
        return datetime.fromtimestamp(float(request.GET.get(service.SENT_AT, "")), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _text(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"{text}\n", "text/plain", status)
