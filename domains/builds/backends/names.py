"""Names of projects and packages."""

from typing import NamedTuple

PROJECT_SOURCES = "_project"
"""The package that contains a project's own sources. It has no metadata of its own."""
MAX_LENGTH = 200
"""Characters of a name, as in OBS."""
_WITH_COLON = ("_product:", "_patchinfo:")
"""Packages with these beginnings have a colon in their own name."""


class PackageRef(NamedTuple):
    """A package, or with an empty `package` its project."""

    project: str
    package: str = ""

    @property
    def sources(self) -> "PackageRef":
        """Return what its metadata belongs to: `hello` for the multibuild flavour `hello:qt`."""
        if self.package == PROJECT_SOURCES:
            return PackageRef(self.project)
        if self.package.startswith(_WITH_COLON):
            return self
        return PackageRef(self.project, self.package.partition(":")[0])


def is_name(text: str) -> bool:
    """Return whether something can have this name: it is one segment of a path."""
    return (
        0 < len(text) <= MAX_LENGTH
        and text not in (".", "..")
        and "/" not in text
        and "\0" not in text
    )
