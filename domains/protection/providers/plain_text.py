"""The text of HTML that others wrote."""

from html.parser import HTMLParser

from tailrace.net.sanitize import printable

LONGEST = 4000
"""Characters that are kept."""
_LEFT_OUT = ("script", "style")


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.left_out = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.left_out += tag in _LEFT_OUT
        self.parts.append(" " if tag in ("br", "p", "li") else "")

    def handle_endtag(self, tag: str) -> None:
        self.left_out -= tag in _LEFT_OUT and self.left_out > 0

    def handle_data(self, data: str) -> None:
        if not self.left_out:
            self.parts.append(data)


def plain_text(html: str) -> str:
    """Return the text of this HTML on one line, without tags; pages escape it as any text."""
    parser = _Text()
    parser.feed(html[: 2 * LONGEST])
    parser.close()
    return " ".join(printable("".join(parser.parts)).split())[:LONGEST]
