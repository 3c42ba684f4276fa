"""The projects, packages and users of the sample backend, and its metadata answers."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape


@dataclass(frozen=True)
class SampleProject:
    """A project with a package, a branch that links to the package, and a copy of it."""

    name: str
    title: str
    package: str
    user: str
    bugowner: str
    reader: str = "bob"
    develproject: str = ""

    @property
    def packages(self) -> tuple[str, ...]:
        return (self.package, f"{self.package}2", f"{self.package}-copy")


PROJECTS = (
    SampleProject("home:alice", "Alice & co", "hello", "alice", "carol"),
    SampleProject("devel:tools", "Tools to build with", "hammer", "bob", "alice"),
    SampleProject(
        "openSUSE:Factory", "The next release", "anvil", "carol", "dave", "erin", "devel:tools"
    ),
    SampleProject("home:bob", "Bob's home", "bonjour", "bob", "bob", "alice"),
    SampleProject("devel:languages:python", "Python für alle", "python-wheel", "dave", "erin"),
    SampleProject("home:doomed", "Soon gone", "relic", "root", "root"),
)


@dataclass
class SourceMetadata:
    """The answers to `/source/…`. Revisions follow the notifications."""

    revisions: dict[tuple[str, str], int] = field(default_factory=dict)

    def update(self, values: Mapping[str, str]) -> None:
        """Update a package's revision from the values of a notification."""
        if values.get("rev", "").isdigit() and "package" in values and "project" in values:
            self.revisions[values["project"], values["package"]] = int(values["rev"])

    def project(self, name: str) -> SampleProject | None:
        return next((project for project in PROJECTS if project.name == name), None)

    def project_meta(self, project: SampleProject) -> str:
        return (
            f'<project name="{project.name}">\n  <title>{escape(project.title)}</title>\n'
            "  <description></description>\n"
            f'  <person userid="{project.user}" role="maintainer" />\n'
            f'  <person userid="{project.reader}" role="reader" />\n'
            '  <group groupid="factory-team" role="bugowner" />\n'
            '  <repository name="standard">\n    <arch>x86_64</arch>\n  </repository>\n</project>\n'
        )

    def package_meta(self, project: SampleProject, package: str) -> str:
        devel = (
            f'  <devel project="{project.develproject}" package="hammer" />\n'
            if project.develproject
            else ""
        )
        return (
            f'<package name="{package}" project="{project.name}">\n'
            f"  <title>{escape(package.capitalize())}</title>\n  <description></description>\n"
            f'{devel}  <person userid="{project.bugowner}" role="bugowner" />\n</package>\n'
        )

    def source_info(self, project: SampleProject, package: str) -> str:
        """Return `<sourceinfo>`; a branch has one `<linked>` per package that it links to."""
        rev = self.revisions.get((project.name, package), 1)
        digest = checksum(project.name, package, rev)
        linked = ""
        if package == project.packages[1]:
            linked = f'  <linked project="{project.name}" package="{project.package}" />\n'
        return (
            f'<sourceinfo package="{package}" rev="{rev}" vrev="{rev}" srcmd5="{digest}"'
            f' verifymd5="{digest}">\n{linked}  <filename>{package}.spec</filename>\n'
            "</sourceinfo>\n"
        )


def checksum(project: str, package: str, rev: int | str) -> str:
    """Return a stable srcmd5 for one revision of a package."""
    named = f"{project}/{package}@{rev}".encode()
    return hashlib.md5(named, usedforsecurity=False).hexdigest()
