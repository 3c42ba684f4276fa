"""The projects, packages and people of the sample backend, and its answers on them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape


@dataclass(frozen=True)
class Place:
    """A project with one package of its own, a branch of it that links to it, and a copy."""

    project: str
    title: str
    package: str
    user: str
    bugowner: str
    reader: str = "bob"
    develproject: str = ""

    @property
    def packages(self) -> tuple[str, ...]:
        return (self.package, f"{self.package}2", f"{self.package}-copy")


PLACES = (
    Place("home:alice", "Alice & co", "hello", "alice", "carol"),
    Place("devel:tools", "Tools to build with", "hammer", "bob", "alice"),
    Place("openSUSE:Factory", "The next release", "anvil", "carol", "dave", "erin", "devel:tools"),
    Place("home:bob", "Bob's home", "bonjour", "bob", "bob", "alice"),
    Place("devel:languages:python", "Python für alle", "python-wheel", "dave", "erin"),
    Place("home:doomed", "Soon gone", "relic", "root", "root"),
)


@dataclass
class World:
    """What `/source/…` tells. Revisions follow the notifications."""

    revisions: dict[tuple[str, str], int] = field(default_factory=dict)

    def take_note(self, values: Mapping[str, str]) -> None:
        """Learn from a notification which revision a package has."""
        if values.get("rev", "").isdigit() and "package" in values and "project" in values:
            self.revisions[values["project"], values["package"]] = int(values["rev"])

    def project(self, name: str) -> Place | None:
        return next((place for place in PLACES if place.project == name), None)

    def project_meta(self, place: Place) -> str:
        return (
            f'<project name="{place.project}">\n  <title>{escape(place.title)}</title>\n'
            "  <description></description>\n"
            f'  <person userid="{place.user}" role="maintainer" />\n'
            f'  <person userid="{place.reader}" role="reader" />\n'
            '  <group groupid="factory-team" role="bugowner" />\n'
            '  <repository name="standard">\n    <arch>x86_64</arch>\n  </repository>\n</project>\n'
        )

    def package_meta(self, place: Place, package: str) -> str:
        devel = (
            f'  <devel project="{place.develproject}" package="hammer" />\n'
            if place.develproject
            else ""
        )
        return (
            f'<package name="{package}" project="{place.project}">\n'
            f"  <title>{escape(package.capitalize())}</title>\n  <description></description>\n"
            f'{devel}  <person userid="{place.bugowner}" role="bugowner" />\n</package>\n'
        )

    def package_list(self, place: Place) -> str:
        entries = "".join(f'  <entry name="{name}" />\n' for name in place.packages)
        return f"<directory>\n{entries}</directory>\n"

    def source_info(self, place: Place, package: str) -> str:
        """Return `<sourceinfo>`; a branch has one `<linked>` per package that it links to."""
        rev = self.revisions.get((place.project, package), 1)
        digest = checksum(place.project, package, rev)
        linked = ""
        if package == place.packages[1]:
            linked = f'  <linked project="{place.project}" package="{place.package}" />\n'
        return (
            f'<sourceinfo package="{package}" rev="{rev}" vrev="{rev}" srcmd5="{digest}"'
            f' verifymd5="{digest}">\n{linked}  <filename>{package}.spec</filename>\n'
            "</sourceinfo>\n"
        )

    def project_info(self, place: Place) -> str:
        infos = "".join(self.source_info(place, package) for package in place.packages)
        return f"<sourceinfolist>\n{infos}</sourceinfolist>\n"


def checksum(project: str, package: str, rev: int | str) -> str:
    """Return a stable srcmd5 for one revision of a package."""
    named = f"{project}/{package}@{rev}".encode()
    return hashlib.md5(named, usedforsecurity=False).hexdigest()
