"""The projects, packages and users of the sample backend, and the metadata that it returns."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

QUOTE = {'"': "&quot;"}


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


class NoSuchSource(Exception):
    """There is no project or package of this name. The message is the server's answer."""


@dataclass
class SourceMetadata:
    """The data below `/source`: the `_meta` of projects and packages, and the state of sources.

    In keys (project, package), an empty package stands for the project itself. Notifications update
    the revisions.
    """

    revisions: dict[tuple[str, str], int] = field(default_factory=dict)
    metas: dict[tuple[str, str], str] = field(default_factory=lambda: dict(_sample_metas()))
    links: dict[tuple[str, str], str] = field(default_factory=lambda: dict(_sample_links()))
    """For each package with a link, the package of the same project to which it links."""
    deleted: dict[tuple[str, str], str] = field(default_factory=dict)
    """The `_meta` of deleted projects and packages, which can be undeleted."""

    def update(self, values: Mapping[str, str]) -> None:
        """Update a package's revision from the values of a notification."""
        if values.get("rev", "").isdigit() and "package" in values and "project" in values:
            self.revisions[values["project"], values["package"]] = int(values["rev"])

    def names(self, project: str = "") -> str:
        """Return the list of projects, or of the packages of a project."""
        if project:
            self.meta(project)
        names = sorted(
            (package if project else name)
            for name, package in self.metas
            if (name == project and package if project else not package)
        )
        entries = "".join(f'  <entry name="{escape(name, QUOTE)}" />\n' for name in names)
        return f"<directory>\n{entries}</directory>\n"

    def meta(self, project: str, package: str = "") -> str:
        """Return the `_meta`; raise NoSuchSource if it does not exist."""
        if (project, "") not in self.metas:
            raise NoSuchSource(f"project '{project}' does not exist")
        if (project, package) not in self.metas:
            raise NoSuchSource(f"package '{package}' does not exist")
        return self.metas[project, package]

    def write_meta(self, meta: str, project: str, package: str = "") -> bool:
        """Store a `_meta`; return whether the project or package is new."""
        if package:
            self.meta(project)
        is_new = (project, package) not in self.metas
        self.metas[project, package] = meta
        return is_new

    def delete(self, project: str, package: str = "") -> None:
        """Delete a package, or a project with all of its packages."""
        self.meta(project, package)
        for name in [name for name in self.metas if name[0] == project]:
            if package in ("", name[1]):
                self.deleted[name] = self.metas.pop(name)

    def undelete(self, project: str, package: str = "") -> None:
        """Restore a deleted package, or a project with all of its packages."""
        if (project, package) not in self.deleted:
            raise NoSuchSource(f"{'package' if package else 'project'} is not deleted")
        for name in [name for name in self.deleted if name[0] == project]:
            if package in ("", name[1]):
                self.metas[name] = self.deleted.pop(name)

    def source_info(self, project: str, package: str) -> str:
        """Return the package's `<sourceinfo>`, with `<linked>` if it links to another package."""
        self.meta(project, package)
        rev = self.revisions.get((project, package), 1)
        digest = checksum(project, package, rev)
        linked = ""
        if target := self.links.get((project, package)):
            linked = f'  <linked project="{project}" package="{target}" />\n'
        return (
            f'<sourceinfo package="{package}" rev="{rev}" vrev="{rev}" srcmd5="{digest}"'
            f' verifymd5="{digest}">\n{linked}  <filename>{package}.spec</filename>\n'
            "</sourceinfo>\n"
        )


def _sample_metas() -> Iterator[tuple[tuple[str, str], str]]:
    for project in PROJECTS:
        yield (project.name, ""), _project_meta(project)
        for package in project.packages:
            yield (project.name, package), _package_meta(project, package)


def _sample_links() -> Iterator[tuple[tuple[str, str], str]]:
    for project in PROJECTS:
        yield (project.name, project.packages[1]), project.package


def _project_meta(project: SampleProject) -> str:
    return (
        f'<project name="{project.name}">\n  <title>{escape(project.title)}</title>\n'
        "  <description></description>\n"
        f'  <person userid="{project.user}" role="maintainer" />\n'
        f'  <person userid="{project.reader}" role="reader" />\n'
        '  <group groupid="factory-team" role="bugowner" />\n'
        '  <repository name="standard">\n    <arch>x86_64</arch>\n  </repository>\n</project>\n'
    )


def _package_meta(project: SampleProject, package: str) -> str:
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


def checksum(project: str, package: str, rev: int | str) -> str:
    """Return a stable srcmd5 for one revision of a package."""
    named = f"{project}/{package}@{rev}".encode()
    return hashlib.md5(named, usedforsecurity=False).hexdigest()
