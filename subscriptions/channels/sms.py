import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings

from events.publish import Recorded
from jobs.claimed import ClaimedJob
from jobs.destination import Fate, Verdict, left_alone
from jobs.handler import Backoff, Handler
from jobs.outcomes import Cancel
from subscriptions import courier, gsm
from subscriptions.channels import base
from subscriptions.channels.base import Channel
from subscriptions.courier import Parcel, Share
from subscriptions.models import Preferences
from subscriptions.recipients import still_told
from subscriptions.sending import Reply, Request
from subscriptions.story import tell
from subscriptions.webhooks import message_id

if TYPE_CHECKING:
    from subscriptions.audience import Heard

LANE = "service"
"""There is one service: what waits for it is released together."""
OPTED_OUT = 21610
TOO_MANY = 20429
NOT_LET_IN = (401, 403, 404)
"""The account, its token or the address is wrong: no text arrives until an operator sees to it."""

NUMBER = re.compile(r"\+?\d{6,}")
"""What an error says of a number stays with the service."""


class Sms(Channel):
    """Text an event to the phone of a user, in one line of 160 characters."""

    name = "subscriptions.sms"
    key = "sms"
    offered_like = "web"
    by_default = False
    reaches_user = (
        "EXISTS (SELECT FROM subscriptions_preferences p WHERE p.user_id = u.id AND p.phone <> '')"
        if settings.SMS_URL
        else "false"
    )
    lacking = "no phone number"
    batch_size = 20
    max_attempts = 6
    backoff = Backoff(30, 300, 1800, 7200)
    claim_timeout = 60
    time_limit = 120

    @classmethod
    def deliveries(cls, heard: "Iterable[Heard]") -> "Iterator[base.Delivery]":
        for one in heard:
            yield base.Delivery(one, one.recipient, LANE)

    handle = Handler.handle  # not one by one: see handle_batch

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        letters = list(_letters(jobs))
        share = _share(letters)
        if share is None:
            return
        courier.carry(self.name, [share], guarded=False)
        courier.settle(self.name, share, LANE)
        for letter, parcel in zip(letters, share.parcels, strict=True):
            if parcel.reply is not None and _code(parcel.reply) == OPTED_OUT:
                # Sending on would be against the law in places; who wants texts again says so.
                Preferences.objects.filter(phone=letter.phone).update(phone="")
                parcel.job.outcome = Cancel("whoever has the number asked for no more texts")


@dataclass(frozen=True, slots=True)
class _Letter:
    """A job that may go out now, and to which number."""

    job: ClaimedJob
    event: Recorded
    phone: str


def _letters(jobs: Sequence[ClaimedJob]) -> Iterator[_Letter]:
    """Yield what may go out now; the other jobs are settled here."""
    told = list(still_told(jobs))
    theirs = Preferences.objects.filter(user__in={one.user.pk for one in told})
    numbers = dict(theirs.values_list("user_id", "phone"))
    for one in told:
        if not settings.SMS_URL:
            one.job.outcome = Cancel("texts are not set up: SMS_URL")
        elif number := numbers.get(one.user.pk, ""):
            yield _Letter(one.job, one.event, number)
        else:
            one.job.skip("the recipient has no phone number any more")


def _share(letters: Sequence[_Letter]) -> Share | None:
    """Return what the service gets now; None if nothing, or if its breaker lets nothing through."""
    if not letters:
        return None
    name = f"{Sms.name}:{urlsplit(settings.SMS_URL).netloc}"
    share = Share(name, courier.gates([name])[name], _judge)
    if share.gate.wait:
        words = "the SMS service is left alone for a while"
        left_alone([letter.job for letter in letters], words, share.gate.wait)
        return None
    share.parcels = [Parcel(letter.job, _request(letter)) for letter in letters]
    return share


def _request(letter: _Letter) -> Request:
    story = tell(letter.event)
    by_service = settings.SMS_FROM.startswith("MG")
    form = {
        "To": letter.phone,
        "MessagingServiceSid" if by_service else "From": settings.SMS_FROM,
        "Body": gsm.one_message(story.title, story.link),
    }
    account = f"{_account(settings.SMS_URL)}:{settings.SMS_TOKEN}"
    headers = {
        "authorization": "Basic " + base64.b64encode(account.encode()).decode(),
        "content-type": "application/x-www-form-urlencoded",
        "accept": "application/json",
        "idempotency-key": message_id(letter.job.id, letter.event),
    }
    return Request(settings.SMS_URL, headers, urlencode(form).encode())


def _account(url: str) -> str:
    found = re.search(r"/Accounts/([^/]+)", urlsplit(url).path)
    return found[1] if found else ""


def _judge(reply: Reply) -> Verdict:
    """Judge by the status and by the error's code: bad numbers and those who opted out for good."""
    if not reply.arrived or reply.status is None:
        return courier.usual(reply)
    if 200 <= reply.status < 300:
        return Verdict(Fate.SENT, result={"status": reply.status, "sid": _field(reply, "sid")})
    words = NUMBER.sub("…", str(_field(reply, "message") or "no reason"))
    reason = f"answered {reply.status}: {words}"[:300]
    if code := _code(reply):
        reason = f"{reason} ({code})"
    if code == TOO_MANY or reply.status in (408, 429) or reply.status >= 500:
        return Verdict(Fate.FAILED, reason, reply.retry_after)
    if reply.status in NOT_LET_IN and code != OPTED_OUT:
        return Verdict(Fate.DOWN, f"{reason}: see to SMS_URL and SMS_TOKEN")
    return Verdict(Fate.REFUSED, reason)


def _code(reply: Reply) -> int:
    found = _field(reply, "code")
    return found if isinstance(found, int) else 0


def _field(reply: Reply, name: str) -> Any:
    try:
        found = json.loads(reply.body)
    except ValueError:
        return None
    return found.get(name) if isinstance(found, dict) else None
