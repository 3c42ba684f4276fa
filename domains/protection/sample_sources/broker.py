"""A data broker: a form with a token, a link to confirm, a listing of people, and faults.

It removes whom a confirmed request names; `relist` puts people back, as brokers do.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from tailrace.net.sample_server import Request, Response

ACCEPTED = "Thank you. Your request has been received."
NOBODY = "No records match"


@dataclass
class DataBroker:
    """The people that it lists, the requests that it took, and the faults."""

    url: str = ""
    people: set[str] = field(default_factory=set)
    """Full names."""
    taken: dict[str, dict[str, str]] = field(default_factory=dict)
    """The form of each request, by its Idempotency-Key: a repeated one is the same."""
    sent: list[Request] = field(default_factory=list)
    """Every POST."""
    asks_to_confirm: bool = False
    asks_for_captcha: bool = False
    captcha_after_form: bool = False
    redirects: bool = False
    """Answer the form by a redirect to the page after it."""
    field_name: str = "full_name"
    action: str = "/opt-out"
    link_to: str = ""
    """Where the confirmation link leads, if not to this site."""
    answer: Callable[[Request], Response | None] = lambda request: None
    """A fault: what is answered instead."""
    before_answer: Callable[[Request], object] = lambda request: None
    """Called when a request was worked on, before its answer is sent."""
    _tokens: dict[str, str] = field(default_factory=dict)
    """The form's token, by the cookie of its session."""
    _links: dict[str, str] = field(default_factory=dict)
    """The name to remove, by the token of its link."""

    def respond(self, request: Request) -> Response:
        if request.method == "POST":
            self.sent.append(request)
        answer = self.answer(request) or self._respond(request)
        self.before_answer(request)
        return answer

    def _respond(self, request: Request) -> Response:
        parts = urlsplit(request.path)
        if parts.path == "/opt-out":
            return self._form() if request.method == "GET" else self._take(request)
        if parts.path == "/thanks":
            return page(ACCEPTED)
        if parts.path.startswith("/confirm/"):
            return self._confirm(parts.path.removeprefix("/confirm/"))
        if parts.path == "/search":
            return self._search(parse_qs(parts.query).get("name", [""])[0])
        if parts.path.startswith("/people/"):
            name = unquote(parts.path.removeprefix("/people/"))
            return page(f"All about {name}") if name in self.people else Response(404)
        return Response(404)

    def _form(self) -> Response:
        session, token = secrets.token_hex(8), secrets.token_hex(8)
        self._tokens[session] = token
        captcha = '<div class="g-recaptcha"></div>' if self.asks_for_captcha else ""
        return page(
            f"""<form action="/search"><input name="q"></form>
            <form method="post" action="{escape(self.action)}">
            <input type="hidden" name="token" value="{token}">
            <input name="{self.field_name}"><input name="email" type="email">
            <select name="agree"><option>yes</select>{captcha}<button>Send</button></form>""",
            {"Set-Cookie": f"session={session}; HttpOnly; Path=/"},
        )

    def _take(self, request: Request) -> Response:
        form = dict(parse_qsl(request.body.decode()))
        session = request.headers.get("cookie", "").removeprefix("session=")
        if form.pop("token", "") != self._tokens.get(session, "-"):
            return page("The token is missing or wrong", status=403)
        if self.captcha_after_form:
            return page('<img id="captcha" src="/picture"> What does it say?')
        self.taken.setdefault(request.headers["idempotency-key"], form)
        if not self.asks_to_confirm:
            self.people.discard(form["full_name"])
            return (
                Response(303, headers={"Location": "/thanks"}) if self.redirects else page(ACCEPTED)
            )
        link = secrets.token_hex(8)
        self._links[link] = form["full_name"]
        return page(f'{ACCEPTED} <a href="{self.link_to or f"/confirm/{link}"}">Confirm it</a>')

    def _confirm(self, link: str) -> Response:
        if link not in self._links:
            return page("This link is not valid", status=410)
        self.people.discard(self._links[link])
        return page("Confirmed")

    def _search(self, name: str) -> Response:
        if name not in self.people:
            return page(f"{NOBODY} {escape(name)}")
        last, first = name.split()[-1], name.split()[0]
        return page(f"1 result: <b>{escape(last)}, {escape(first)}</b>, age 44")


def page(html: str, headers: dict[str, str] | None = None, status: int = 200) -> Response:
    body = f"<!doctype html><title>Broker</title><style>p {{}}</style><p>{html}</p>"
    return Response(status, body.encode(), {"Content-Type": "text/html", **(headers or {})})
