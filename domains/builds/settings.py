"""The settings of builds."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from tailrace.environment.folders import var_dir
from tailrace.environment.insecure import Insecure, lacks_tls, names_without_tls
from tailrace.environment.settings import AppSettings, named_variables
from tailrace.environment.types import ByHost, NamedUrls, Names, Rule, Url

MAX_NUMBER = 2**62


@dataclass(frozen=True)
class LogStart(Rule):
    """Where to begin in a log."""

    kind = "oldest, now or a number"

    def read(self, text: str) -> str:
        if text not in ("", "oldest", "now") and not (
            text.isascii() and text.isdecimal() and 1 <= int(text[:20]) <= MAX_NUMBER
        ):
            raise ValueError(f"{text[:40]!r} is not `oldest`, `now` or a number from 1")
        return text


class BuildsSettings(AppSettings):
    """The build service, the bus and the project log."""

    prefixes = ("OBS_", "BUS_", "PROJECT_LOG_", "SCM_")
    insecure = (
        Insecure(
            "tailrace.E109",
            "BUS_WEBHOOK_SECRET: is not set, but bus backend {} needs it to sign requests",
            lambda own: own._unsigned_buses(),
            "Set BUS_WEBHOOK_SECRET or BUS_SECRET_<NAME> to a whsec_… key that the receiver knows.",
        ),
        Insecure(
            "tailrace.W104",
            "BUS_BACKENDS: the connection to {} is not encrypted",
            lambda own: names_without_tls(own.BUS_BACKENDS),
            "Use amqps:// or https:// URLs.",
        ),
        Insecure(
            "tailrace.W105",
            "BUS_SOURCE_URL: the connection to the bus is not encrypted",
            lambda own: lacks_tls(own.BUS_SOURCE_URL),
            "Use an amqps:// URL.",
        ),
        Insecure(
            "tailrace.W106",
            "OBS_BACKEND_URL: the connection to {} is not encrypted",
            lambda own: names_without_tls(own.OBS_BACKENDS),
            "Use https:// URLs.",
        ),
    )

    OBS_BACKENDS: Annotated[dict[str, str], NamedUrls(("http", "https"), unnamed="obs")] = Field(
        {}, validation_alias="OBS_BACKEND_URL"
    )
    """build service backends whose notifications are read, by name; a URL without a name is
    named obs"""
    OBS_POLL_SECONDS: PositiveInt = 17
    """seconds between two reads of a backend"""
    OBS_LONG_POLL: bool = False
    """use long polling: the backend answers when there are new notifications"""
    OBS_START: Annotated[str, LogStart()] = ""
    """where the first read of a log begins: `oldest`, `now` or a number; empty: `now` if
    OBS_NOPRUNE, else `oldest`"""
    OBS_PAST: Literal["record", "notify"] = "record"
    """how events from before the first read are treated: only recorded, or handled like new
    events"""
    OBS_VIEW: Literal["json", "xml"] = "json"
    """format in which the notifications are requested"""
    OBS_NOPRUNE: bool = True
    """ask the backend not to delete entries after a read, because the log has another reader, such
    as a frontend"""
    OBS_PAGE_LIMIT_BYTES: int = Field(16 * 1024 * 1024, ge=500_000)
    """largest response of a backend that is held in memory; a larger page of the log is read in
    parts"""
    OBS_UNKNOWN_PROJECTS: Literal["hidden", "public"] = "hidden"
    """visibility of events if the metadata of their project was not read yet, or if their backend
    is unknown"""
    OBS_TIMEOUT_SECONDS: PositiveInt = 30
    """seconds after which a backend that does not respond is considered down"""
    OBS_LOG_TAIL_BYTES: int = Field(18 * 1024, ge=0, le=1024 * 1024)
    """bytes from the end of the build log to show in mails about failed builds; 0: no log"""
    OBS_WEB_URL: Annotated[str, Url(("https", "http"))] = ""
    """URL of the build service's web pages, for links in notifications and commit statuses; empty:
    no links"""
    SCM_TOKENS: Annotated[dict[str, str], ByHost()] = {}
    """API tokens that set commit statuses, by host; statuses are sent only to these hosts"""
    SCM_PROVIDERS: Annotated[dict[str, str], ByHost()] = {}
    """provider of each host: github, gitlab or gitea; well-known hosts such as github.com need no
    entry"""
    SCM_TAKES_HIDDEN: Names = Field(default_factory=list)
    """hosts in SCM_TOKENS that also receive statuses of hidden projects"""
    SCM_TRUSTED_SOURCES: Names = Field(default_factory=list)
    """sources of API tokens whose events also set commit statuses, like events that backends
    report"""
    BUS_BACKENDS: Annotated[
        dict[str, str],
        NamedUrls(("file", "amqp", "amqps", "http", "https", "obs+http", "obs+https")),
    ] = Field(
        default_factory=lambda: {"file": f"file://{var_dir() / 'bus.ndjson'}"},
        examples=["file=file://var/bus.ndjson"],
    )
    """buses that each event is sent to, by name"""
    BUS_TAKES_HIDDEN: Names = Field(default_factory=list)
    """names of the BUS_BACKENDS that also receive events of hidden projects"""
    BUS_METRICS: Names = Field(default_factory=list)
    """names of the BUS_BACKENDS that also receive metrics of events"""
    BUS_NAMESPACE: str = "opensuse.obs"
    """first part of each routing key"""
    BUS_WEBHOOK_SECRET: str = ""
    """whsec_… key that signs requests to http(s) bus backends"""
    BUS_SECRETS: dict[str, str] = named_variables("BUS_SECRET_")
    """whsec_… key of one bus backend; <NAME> is the backend's name in capitals"""
    BUS_SOURCE_URL: Annotated[str, Url(("amqp", "amqps"))] = ""
    """bus that events are read from; empty: none"""
    BUS_SOURCE_KEYS: Names = Field(default_factory=lambda: ["#"], examples=["#"])
    """patterns of the routing keys that are read from the bus, without the namespace, such as
    request.#,*.comment"""
    PROJECT_LOG_BUILD_DAYS: PositiveInt = 1
    """days that build results are kept in project logs"""
    PROJECT_LOG_DAYS: PositiveInt = 10
    """days that other entries are kept in project logs"""

    def _unsigned_buses(self) -> str:
        """Return the names of the HTTP bus backends that have no signing key, by commas."""
        return ", ".join(
            name
            for name, url in self.BUS_BACKENDS.items()
            if url.startswith("http")
            and not self.BUS_SECRETS.get(name.upper(), self.BUS_WEBHOOK_SECRET)
        )
