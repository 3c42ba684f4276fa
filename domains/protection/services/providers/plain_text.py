"""Convert HTML from other sites to text."""

from html.parser import HTMLParser

from tailrace.net.sanitize import printable

LONGEST = 4000
"""Maximum number of characters of the text."""
_IGNORED_TAGS = ("script", "style")


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.ignored_depth = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.ignored_depth += tag in _IGNORED_TAGS
        self.parts.append(" " if tag in ("br", "p", "li") else "")

    def handle_endtag(self, tag: str) -> None:
        self.ignored_depth -= tag in _IGNORED_TAGS and self.ignored_depth > 0

    def handle_data(self, data: str) -> None:
        if not self.ignored_depth:
            self.parts.append(data)


def plain_text(html: str) -> str:
    """Return the text of this HTML on one line, without tags. It is not escaped."""
    parser = _Text()
    parser.feed(html[: 2 * LONGEST])
    parser.close()
    return " ".join(printable("".join(parser.parts)).split())[:LONGEST]
