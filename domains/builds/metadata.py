"""metadata: what a backend tells of projects and packages, and the payloads it keeps for us."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring
from django.conf import settings

from domains.builds.sources.client import Backend, BackendError, NotFound

__all__ = ["BackendError", "Holder", "Meta", "Metadata", "NotAName", "NotFound", "SourceInfo"]


class NotAName(ValueError):
    """No project, package or key can be called so."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A role that `_meta` gives to a user (login) or a group; the other is empty."""

    role: str
    user: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Meta:
    """What `_meta` of a project or package says."""

    title: str
    holders: frozenset[Holder]
    devel_project: str = ""
    devel_package: str = ""
    hidden: bool = False
    """Whether it may be read by nobody but those who hold a role in it."""


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """The state of a package's sources."""

    srcmd5: str = ""
    verifymd5: str = ""
    rev: str = ""
    vrev: str = ""
    error: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    """(project, package) of each package that its sources are made of, the nearest first."""


class Metadata:
    """The backend of one name in OBS_BACKENDS; use it as a context manager.

    All calls raise NotFound for what is not there, NotAName, or another BackendError for what a
    later try may mend.
    """

    def __init__(self, backend: str) -> None:
        self._backend = Backend(backend, settings.OBS_BACKENDS[backend])

    def __enter__(self) -> Self:
        self._backend.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._backend.__exit__(kind, error, trace)

    def project_meta(self, project: str) -> Meta:
        return _meta(self._xml("source", project, "_meta"), project)

    def package_meta(self, project: str, package: str) -> Meta:
        return _meta(self._xml("source", project, package, "_meta"), project)

    def source_info(self, project: str, package: str) -> SourceInfo:
        root = self._xml("source", project, package, view="info")
        return SourceInfo(
            srcmd5=root.get("srcmd5", ""),
            verifymd5=root.get("verifymd5", ""),
            rev=root.get("rev", ""),
            vrev=root.get("vrev", ""),
            error=(root.findtext("error") or "").strip()[:2000],
            links=[
                (linked.get("project", ""), linked.get("package", ""))
                for linked in root.findall("linked")
            ],
        )

    def notification_payload(self, key: str) -> list[dict[str, Any]]:
        """Return the objects of the JSON array that is kept under the key."""
        body = self._backend.get(_path("notificationpayload", key))
        try:
            found = json.loads(body)
        except ValueError as error:
            raise BackendError(f"the payload is not JSON: {error}") from None
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise BackendError("the payload is not an array of objects")
        return found

    def delete_notification_payload(self, key: str) -> None:
        """Let the backend forget the payload; it does not mind being told twice."""
        self._backend.delete(_path("notificationpayload", key))

    def _xml(self, *path: str, **query: str) -> Element:
        body = self._backend.get(_path(*path), **query)
        try:
            return fromstring(body, forbid_dtd=True)
        except (ParseError, DefusedXmlException, ValueError) as error:
            raise BackendError(f"{'/'.join(path)} is not XML that can be read: {error}") from None


def _path(*names: str) -> str:
    return "/" + "/".join(map(_segment, names))


def _segment(name: str) -> str:
    """Return a name as one segment of a path: whoever chose it, it leads nowhere else."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise NotAName(f"{name!r} is no name")
    return quote(name, safe=":+@")


def _meta(root: Element, project: str) -> Meta:
    devel = root.find("devel")
    return Meta(
        title=(root.findtext("title") or "").strip()[:500],
        holders=frozenset(_holders(root)),
        devel_project="" if devel is None else devel.get("project", project),
        devel_package="" if devel is None else devel.get("package", root.get("name", "")),
        hidden=root.find("access/disable") is not None,
    )


def _holders(root: Element) -> Iterable[Holder]:
    for person in root.findall("person"):
        if person.get("userid") and person.get("role"):
            yield Holder(person.get("role", ""), user=person.get("userid", ""))
    for group in root.findall("group"):
        if group.get("groupid") and group.get("role"):
            yield Holder(group.get("role", ""), group=group.get("groupid", ""))
