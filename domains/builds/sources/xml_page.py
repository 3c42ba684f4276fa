"""Split a page in XML into its entries while it arrives, with a size limit for each entry."""

from typing import Any
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from tailrace.domains.builds.event_types.cut_values import CUT
from tailrace.domains.builds.sources.json_page import ELLIPSIS, MAX_NAMES, MAX_TEXT
from tailrace.domains.builds.sources.log_page import BadPage, IncompletePage

_CUT_LENGTH = MAX_TEXT + len(ELLIPSIS) + 1
"""Values of this length are cut; values that were cut before are shorter."""


class XmlPage:
    """Collects `entries`, the complete entries of the page in the same form as in JSON, and
    `members`, the attributes of the page. The XML parser calls `start`, `data` and `end`."""

    def __init__(self, max_entry: int) -> None:
        self.entries: list[Any] = []
        self.members: dict[str, Any] = {}
        self._max_entry = max_entry
        self._parser = DefusedXMLParser(target=self, forbid_dtd=True)
        self._depth = 0
        self._entry: dict[str, Any] | None = None
        self._key: str | None = None
        self._value: list[str] = []
        self._value_size = self._entry_size = self._unread = 0
        self._ended = False

    def feed(self, chunk: bytes) -> None:
        """Parse the next piece; raise BadPage if it is not a page, ill-formed, or has a DTD."""
        self._unread += len(chunk)
        self._parse(lambda: self._parser.feed(chunk))
        if self._unread > 2 * self._max_entry:  # in a single tag
            raise BadPage("an XML page with a tag that is too big")

    def finish(self) -> None:
        """Finish parsing at the end of the document; raise IncompletePage if it is incomplete."""
        try:
            self._parse(self._parser.close)
        except BadPage as error:
            raise (error if self._ended else IncompletePage(str(error))) from None

    def _parse(self, call: Any) -> None:
        try:
            call()
        except BadPage:
            raise
        except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
            raise BadPage(f"data that is not well-formed XML ({error})"[:300]) from None

    # --- methods that the parser calls ---

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._unread = 0
        self._depth += 1
        if self._depth == 1:
            if tag != "notifications":
                raise BadPage(f"an invalid page: the root element is <{tag}>"[:300])
            self.members = dict(attributes)
        elif tag == "notification":
            self._entry_size = 0
            self._entry = {"type": "", **attributes, "data": {}}
        elif tag == "data":
            self._key, self._value, self._value_size = attributes.get("key", ""), [], 0
            self._entry_size += len(self._key)

    def data(self, text: str) -> None:
        self._unread = 0
        if self._key is None:
            return
        self._entry_size += len(text)
        if self._entry_size > self._max_entry:
            text = text[: max(_CUT_LENGTH - self._value_size, 0)]
        if text:
            self._value_size += len(text)
            self._value.append(text)

    def end(self, tag: str) -> None:
        self._unread = 0
        self._depth -= 1
        if not self._depth:
            self._ended = True
        elif tag == "data" and self._entry is not None and self._key is not None:
            self._entry["data"][self._key] = "".join(self._value)
            self._key, self._value = None, []
            if self._entry_size > self._max_entry:
                self._entry["data"] = _cut(self._entry["data"])
        elif tag == "notification" and self._entry is not None:
            self.entries.append(self._entry)
            self._entry = None


def _cut(values: dict[str, str]) -> dict[str, str]:
    """Return the values of an entry that is too big, with long texts cut and their names in CUT."""
    cut_before = values.pop(CUT, "")
    cut = cut_before.split(", ") if cut_before else []
    cut += [key for key, value in values.items() if len(value) > MAX_TEXT and key not in cut]
    values = {
        key: value[:MAX_TEXT] + ELLIPSIS if len(value) >= _CUT_LENGTH else value
        for key, value in list(values.items())[:200]
    }
    return values | {CUT: ", ".join(cut[:MAX_NAMES])[:MAX_TEXT]}
