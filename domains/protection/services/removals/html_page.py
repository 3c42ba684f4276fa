"""Parse a broker's page: its forms, its links, its text, and whether it has a captcha."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

MAX_FORMS, MAX_FIELDS, MAX_LINKS = 20, 200, 500
CAPTCHA = ("captcha", "cf-turnstile")
_IGNORED_TAGS = ("script", "style", "template")


@dataclass
class Form:
    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass
class Link:
    href: str
    text: str = ""


@dataclass
class HtmlPage:
    forms: list[Form] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    text: str = ""
    """The text of the page in lower case, with one space between words."""
    has_captcha: bool = False


def read_page(html: str) -> HtmlPage:
    """Return the parsed page. Invalid HTML is not an error."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    parser.page.text = plain(" ".join(parser.words))
    return parser.page


def plain(text: str) -> str:
    """Return the text in lower case with single spaces, for comparisons."""
    return " ".join(text.casefold().split())


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page, self.words = HtmlPage(), list[str]()
        self._form: Form | None = None
        self._link: Link | None = None
        self._ignored_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        marks = " ".join(values.get(name, "") for name in ("name", "class", "id", "src"))
        if any(mark in marks.casefold() for mark in CAPTCHA):
            self.page.has_captcha = True
        if tag in _IGNORED_TAGS:
            self._ignored_depth += 1
        elif tag == "form" and len(self.page.forms) < MAX_FORMS:
            method = values.get("method", "get").upper()
            self._form = Form(values.get("action", ""), method)
            self.page.forms.append(self._form)
        elif tag in ("input", "select", "textarea") and self._form is not None:
            if values.get("name") and len(self._form.fields) < MAX_FIELDS:
                self._form.fields[values["name"]] = values.get("value", "")
        elif tag == "a" and len(self.page.links) < MAX_LINKS:
            self._link = Link(values.get("href", ""))
            self.page.links.append(self._link)

    def handle_endtag(self, tag: str) -> None:
        if tag in _IGNORED_TAGS:
            self._ignored_depth = max(self._ignored_depth - 1, 0)
        elif tag == "form":
            self._form = None
        elif tag == "a":
            self._link = None

    def handle_data(self, data: str) -> None:
        if not self._ignored_depth:
            self.words.append(data)
            if self._link is not None:
                self._link.text += data
