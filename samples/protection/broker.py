"""A sample data broker with a form, a confirmation link, a listing of people, and faults. A
confirmed request removes its person from the listing."""

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
    """The listed people, the received requests, and the faults."""

    url: str = ""
    people: set[str] = field(default_factory=set)
    """The full names of the listed people."""
    taken: dict[str, dict[str, str]] = field(default_factory=dict)
    """The form of each request by its Idempotency-Key. A repeated request is stored once."""
    sent: list[Request] = field(default_factory=list)
    """Every POST request."""
    asks_to_confirm: bool = False
    asks_for_captcha: bool = False
    captcha_after_form: bool = False
    redirects: bool = False
    """Whether the form is answered with a redirect to the next page."""
    field_name: str = "full_name"
    action: str = "/opt-out"
    link_to: str = ""
    """The target of the confirmation link, if it is not on this site."""
    answer: Callable[[Request], Response | None] = lambda request: None
    """A fault: the response returned by this function replaces the normal one."""
    before_answer: Callable[[Request], object] = lambda request: None
    """Called when a request has been processed, before its response is sent."""
    _tokens: dict[str, str] = field(default_factory=dict)
    """The form's token by the cookie of the session."""
    _links: dict[str, str] = field(default_factory=dict)
    """The name to remove by the token of the link."""

    def respond(self, request: Request) -> Response:
        if request.method == "POST":
            self.sent.append(request)
        answer = self.answer(request) or self._respond(request)
        self.before_answer(request)
        return answer

    def _respond(self, request: Request) -> Response:
        parts = urlsplit(request.path)
        if parts.path == "/opt-out":
            return self._form() if request.method == "GET" else self._accept(request)
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

    def _accept(self, request: Request) -> Response:
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
