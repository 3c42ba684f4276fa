"""The settings of builds."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from environment.folders import var_dir
from environment.settings import AppSettings, named_variables
from environment.types import NamedUrls, Url


class BuildsSettings(AppSettings):
    """The build service, the bus and the project log."""

    prefixes = ("OBS_", "BUS_", "PROJECT_LOG_")

    OBS_BACKENDS: Annotated[dict[str, str], NamedUrls(("http", "https"), unnamed="obs")] = Field(
        {}, validation_alias="OBS_BACKEND_URL"
    )
    """build service backends whose notifications are read, by name; a URL without a name is
    named obs"""
    OBS_POLL_SECONDS: PositiveInt = 17
    """seconds between two reads of a backend"""
    OBS_LONG_POLL: bool = False
    """let the backend hold the request until there are notifications"""
    OBS_VIEW: Literal["json", "xml"] = "json"
    """format in which the notifications are requested"""
    OBS_NOPRUNE: bool = True
    """ask the backend to keep what it has already sent"""
    OBS_PAGE_LIMIT_BYTES: int = Field(16 * 1024 * 1024, ge=1024)
    """largest response of a backend that is read"""
    OBS_TIMEOUT_SECONDS: PositiveInt = 30
    """seconds after which a backend that does not respond counts as down"""
    BUS_BACKENDS: Annotated[
        dict[str, str], NamedUrls(("file", "amqp", "amqps", "http", "https"))
    ] = Field(
        default_factory=lambda: {"file": f"file://{var_dir() / 'bus.ndjson'}"},
        examples=["file=file://var/bus.ndjson"],
    )
    """buses that each event is sent to, by name"""
    BUS_NAMESPACE: str = "opensuse.obs"
    """first part of each routing key"""
    BUS_WEBHOOK_SECRET: str = ""
    """whsec_… key that signs requests to http(s) bus backends"""
    BUS_SECRETS: dict[str, str] = named_variables("BUS_SECRET_")
    """key for only the bus backend of that name (in capitals)"""
    BUS_SOURCE_URL: Annotated[str, Url(("amqp", "amqps"))] = ""
    """bus that events are read from; empty: none"""
    PROJECT_LOG_BUILD_DAYS: PositiveInt = 1
    """days that build results are kept in project logs"""
    PROJECT_LOG_DAYS: PositiveInt = 10
    """days that other entries are kept in project logs"""
    SAMPLE_BACKEND_PORT: PositiveInt = 5352
    """port of the sample backend, if OBS_BACKEND_URL is not set"""
