"""The XML of OAI-PMH responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from xml.sax.saxutils import escape, quoteattr

SECONDS = "%Y-%m-%dT%H:%M:%SZ"


class OaiError(Exception):
    """A protocol error. The response has the HTTP status 200 and an <error> element."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def xml(self) -> str:
        return f"<error code={quoteattr(self.code)}>{escape(str(self))}</error>"


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record of a repository; if `elements` is None, the record is deleted."""

    identifier: str
    changed_at: datetime
    sets: tuple[str, ...]
    elements: Mapping[str, list[str]] | None

    def xml(self, datestamp: str) -> str:
        status = "" if self.elements is not None else ' status="deleted"'
        sets = "".join(f"<setSpec>{escape(name)}</setSpec>" for name in self.sets)
        header = (
            f"<header{status}><identifier>{escape(self.identifier)}</identifier>"
            f"<datestamp>{datestamp}</datestamp>{sets}</header>"
        )
        if self.elements is None:
            return f"<record>{header}</record>"
        values = "".join(
            f"<dc:{name}>{escape(value)}</dc:{name}>"
            for name, values in self.elements.items()
            for value in values
        )
        return (
            f"<record>{header}<metadata>"
            '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'
            f' xmlns:dc="http://purl.org/dc/elements/1.1/">{values}</oai_dc:dc>'
            "</metadata></record>"
        )


def document(url: str, arguments: Mapping[str, str], moment: datetime, content: str) -> bytes:
    """Return a complete response with this content."""
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in arguments.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
        f"<responseDate>{moment:{SECONDS}}</responseDate>"
        f"<request{attributes}>{escape(url)}</request>{content}</OAI-PMH>\n"
    ).encode()


def identify(name: str, url: str, earliest: str, deleted_record: str, granularity: str) -> str:
    return (
        f"<Identify><repositoryName>{escape(name)}</repositoryName>"
        f"<baseURL>{escape(url)}</baseURL><protocolVersion>2.0</protocolVersion>"
        "<adminEmail>admin@example.org</adminEmail>"
        f"<earliestDatestamp>{earliest}</earliestDatestamp>"
        f"<deletedRecord>{deleted_record}</deletedRecord>"
        f"<granularity>{granularity}</granularity><compression>gzip</compression></Identify>"
    )


def resumption_token(token: str, offset: int, total: int, expires: datetime | None) -> str:
    expiration = f' expirationDate="{expires:{SECONDS}}"' if expires else ""
    return (
        f'<resumptionToken{expiration} completeListSize="{total}" cursor="{offset}">'
        f"{escape(token)}</resumptionToken>"
    )
