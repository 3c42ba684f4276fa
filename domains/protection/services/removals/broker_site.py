"""Do the steps of a removal request at a broker's site: submit its form, follow its confirmation
link, check whether a person is listed.

A form may be submitted twice if the worker dies before it records the result. Both requests then
have the same `Idempotency-Key`. Addresses that a broker's page names have to be on the same site.
"""

from urllib.parse import urlencode, urljoin, urlsplit

from django.conf import settings

from tailrace.domains.protection.models.removal import RemovalStep
from tailrace.domains.protection.services.removals.brokers import Broker, Confirmation
from tailrace.domains.protection.services.removals.html_page import Form, HtmlPage, plain, read_page
from tailrace.domains.protection.services.removals.person import Person
from tailrace.domains.protection.services.removals.steps import Outcome, Step, StepResult
from tailrace.net.http_client import Reply, Request
from tailrace.net.shared_client import shared_client

MAX_BYTES = 1_000_000
"""Limit for a page."""
TRY_LATER = (408, 425, 429)
ASKS_FOR_CAPTCHA = "the broker asks for a captcha, which only a person may solve"


class _StepEnded(Exception):
    """Ends the step with a result."""

    def __init__(self, outcome: Outcome, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.result = StepResult(outcome, reason, after)


async def perform(step: Step) -> StepResult:
    """Do the current step of this request at its broker; return the result."""
    try:
        match step.row.step:
            case RemovalStep.SUBMIT:
                return await _submit(step)
            case RemovalStep.CONFIRM:
                return await _confirm(step)
            case _:
                return await _verify(step)
    except _StepEnded as end:
        return end.result


async def _submit(step: Step) -> StepResult:
    broker = step.broker
    reply = await _get(broker.removal_url)
    page = _page(reply, "the page with the form")
    form = _form_of(page, broker)
    target = _same_site(broker.removal_url, form.action or broker.removal_url)
    body = urlencode({**form.fields, **broker.filled(step.person)}).encode()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "idempotency-key": step.idempotency_key,
        "origin": _site(broker.removal_url),
        "referer": broker.removal_url,
    }
    if cookie := reply.headers.get("set-cookie", "").partition(";")[0]:
        headers["cookie"] = cookie
    answer = await _send(Request(target, headers, body, "POST", MAX_BYTES))
    if answer.status in (302, 303):
        target = _same_site(target, answer.headers.get("location", ""))
        answer = await _get(target)
    accepted = _page(answer, "the form")
    if plain(broker.accepted_text) not in accepted.text:
        raise _StepEnded(
            Outcome.FAILED, "the page after the form does not confirm that the request was accepted"
        )
    by_link = broker.confirmation is Confirmation.LINK
    link = _confirm_link(accepted, target) if by_link else ""
    return StepResult(Outcome.SUBMITTED, confirm_url=link)


async def _confirm(step: Step) -> StepResult:
    _page(await _get(step.confirm_url), "the confirmation link")
    return StepResult(Outcome.CONFIRMED)


async def _verify(step: Step) -> StepResult:
    verification = step.broker.verification
    if verification is None:
        raise _StepEnded(
            Outcome.NEEDS_PERSON, "there is no known page where this broker lists people"
        )
    reply = await _get(step.broker.listing_url(step.person))
    if reply.status in verification.not_listed_status:
        return StepResult(Outcome.NOT_LISTED)
    try:
        page = _page(reply, "the listing page")
    except _StepEnded as end:  # the result is unclear; a later check may be clear
        raise _StepEnded(Outcome.FAILED, end.result.reason, end.result.after) from None
    if verification.not_listed_text and plain(verification.not_listed_text) in page.text:
        return StepResult(Outcome.NOT_LISTED)
    if _has_name(step.person, page):
        return StepResult(Outcome.LISTED)
    raise _StepEnded(Outcome.FAILED, "the listing page does not show whether the person is listed")


def _form_of(page: HtmlPage, broker: Broker) -> Form:
    """Return the page's form that has the broker's fields."""
    best = max(page.forms, key=lambda form: len(broker.fields.keys() & form.fields), default=None)
    if best is None:
        raise _StepEnded(Outcome.NEEDS_PERSON, "the page no longer has a form")
    if missing := sorted(broker.fields.keys() - best.fields):
        names = ", ".join(missing[:5])
        raise _StepEnded(Outcome.NEEDS_PERSON, f"the form has changed: it has no field {names}")
    if best.method != "POST":
        raise _StepEnded(Outcome.NEEDS_PERSON, "the form would put the person's data into a URL")
    return best


def _confirm_link(page: HtmlPage, base: str) -> str:
    for link in page.links:
        if "confirm" in plain(link.text) or "confirm" in link.href.casefold():
            return _same_site(base, link.href)
    raise _StepEnded(Outcome.NEEDS_PERSON, "the page after the form has no confirmation link")


def _page(reply: Reply, label: str) -> HtmlPage:
    """Return the page of a successful reply. Other replies raise _StepEnded; its reason begins with
    `label`."""
    status = reply.status
    if reply.refused:
        raise _StepEnded(Outcome.REFUSED, f"{label}: {reply.error}")
    if status is None or reply.error:
        raise _StepEnded(Outcome.FAILED, f"{label}: {reply.error or 'no answer'}")
    if status >= 500 or status in TRY_LATER:
        raise _StepEnded(Outcome.FAILED, f"{label}: answered {status}", reply.retry_after)
    page = read_page(reply.body.decode(errors="replace"))
    if page.has_captcha:
        raise _StepEnded(Outcome.NEEDS_PERSON, ASKS_FOR_CAPTCHA)
    if not 200 <= status < 300:
        raise _StepEnded(Outcome.NEEDS_PERSON, f"{label}: answered {status}")
    if reply.cut:
        raise _StepEnded(Outcome.FAILED, f"{label}: answered with more than {MAX_BYTES:,} bytes")
    return page


def _has_name(person: Person, page: HtmlPage) -> bool:
    """Return whether the page has the person's name, in either order."""
    words = plain(person.name).split()
    text = page.text.replace(",", "")
    orders = (words, [words[-1], *words[:-1]])
    return any(f" {' '.join(order)} " in f" {text} " for order in orders)


def _same_site(base: str, address: str) -> str:
    url = urljoin(base, address)
    if not address or _site(url) != _site(base):
        raise _StepEnded(
            Outcome.NEEDS_PERSON, "the page leads to another site, which is not trusted"
        )
    return url


def _site(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


async def _get(url: str) -> Reply:
    return await _send(Request(url, {}, method="GET", max_bytes=MAX_BYTES))


async def _send(request: Request) -> Reply:
    return await shared_client(public_only=not settings.PROTECTION_LOCAL_BROKERS).send(request)
