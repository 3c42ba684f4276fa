"""A client for a backend's metadata of projects and packages, and for packtrack payloads."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring
from django.conf import settings

from tailrace.domains.builds.backends.client import BackendClient, BackendError
from tailrace.domains.builds.backends.names import PROJECT_SOURCES


class InvalidName(ValueError):
    """The text cannot be the name of a project, a package or a payload."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A role that `_meta` gives to a user (a login) or to a group. One of the two is empty."""

    role: str
    user: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Meta:
    """The `_meta` of a project or package."""

    title: str
    holders: frozenset[Holder]
    devel_project: str = ""
    devel_package: str = ""
    hidden: bool = False
    """Whether only users and groups with a role in the project may read it."""
    scmsync: str = ""
    """URL of the Git repository with the sources, without a login."""


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """The state of a package's sources."""

    srcmd5: str = ""
    verifymd5: str = ""
    rev: str = ""
    vrev: str = ""
    error: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    """(project, package) of each package in the chain of links, the nearest first."""


class MetadataClient(BackendClient):
    """A client of one backend, by its name in OBS_BACKENDS.

    All calls raise NotFound, InvalidName, or another BackendError if a later attempt may succeed.
    """

    def __init__(self, backend: str) -> None:
        seconds = min(self.short_seconds, settings.OBS_TIMEOUT_SECONDS)
        super().__init__(backend, settings.OBS_BACKENDS[backend], seconds=seconds)

    def projects(self) -> list[str]:
        """Return the names of all projects."""
        return self._list("source")

    def packages(self, project: str) -> list[str]:
        """Return the names of a project's packages."""
        return [name for name in self._list("source", project) if name != PROJECT_SOURCES]

    def project_meta(self, project: str) -> Meta:
        return _meta(self._xml("source", project, "_meta"), project)

    def package_meta(self, project: str, package: str) -> Meta:
        return _meta(self._xml("source", project, package, "_meta"), project)

    def source_info(self, project: str, package: str) -> SourceInfo:
        root = self._xml("source", project, package, view="info")
        return SourceInfo(
            **{key: root.get(key, "") for key in ("srcmd5", "verifymd5", "rev", "vrev")},
            error=(root.findtext("error") or "").strip()[:2000],
            links=[(e.get("project", ""), e.get("package", "")) for e in root.findall("linked")],
        )

    def notification_payload(self, key: str) -> list[dict[str, Any]]:
        """Return the objects of the JSON array that is stored under the key."""
        path = path_of("notificationpayload", key)
        body = self.get(path, seconds=settings.OBS_TIMEOUT_SECONDS)
        try:
            items = json.loads(body)
        except ValueError as error:
            raise BackendError(f"the payload is not JSON: {error}") from None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise BackendError("the payload is not an array of objects")
        return items

    def delete_notification_payload(self, key: str) -> None:
        """Delete a payload. Deleting a payload a second time has no effect."""
        self.delete(path_of("notificationpayload", key))

    def _list(self, *path: str) -> list[str]:
        """Return the names in a directory listing, within OBS_TIMEOUT_SECONDS: it may be long."""
        body = self.get(path_of(*path), seconds=settings.OBS_TIMEOUT_SECONDS)
        entries = parsed(body, "/".join(path)).findall("entry")
        return [name for entry in entries if (name := entry.get("name", ""))]

    def _xml(self, *path: str, **query: str) -> Element:
        return parsed(self.get(path_of(*path), query), "/".join(path))


def parsed(body: bytes, name: str) -> Element:
    """Return the XML document called `name` in errors; raise BackendError if it is not XML."""
    try:
        return fromstring(body, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise BackendError(f"{name} is not readable XML: {error}") from None


def path_of(*names: str) -> str:
    """Return the URL path with each name as one segment, or raise InvalidName."""
    for name in names:
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            raise InvalidName(f"{name!r} is not a valid name")
    return "/" + "/".join(quote(name, safe=":+@") for name in names)


def _meta(root: Element, project: str) -> Meta:
    devel = root.find("devel")
    scmsync = (root.findtext("scmsync") or "").strip()[:2000]
    return Meta(
        title=(root.findtext("title") or "").strip()[:500],
        holders=frozenset(_holders(root)),
        devel_project="" if devel is None else devel.get("project", project),
        devel_package="" if devel is None else devel.get("package", root.get("name", "")),
        hidden=root.find("access/disable") is not None,
        scmsync=re.sub(r"^([^/?#]*//)[^/?#]*@", r"\1", scmsync),  # without the login
    )


def _holders(root: Element) -> Iterator[Holder]:
    for tag, field_name in (("person", "user"), ("group", "group")):
        for element in root.findall(tag):
            role, name = element.get("role"), element.get(f"{field_name}id")
            if role and name:
                yield Holder(role, **{field_name: name})
