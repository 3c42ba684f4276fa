"""Names of projects and packages."""

from typing import NamedTuple

PROJECT_SOURCES = "_project"
"""The package that contains a project's own sources. It has no metadata of its own."""
MAX_LENGTH = 200
"""Characters of a name, as in OBS."""
_WITH_COLON = ("_product:", "_patchinfo:")
"""Packages with these prefixes have a colon in their own name, which starts no flavour."""


class PackageRef(NamedTuple):
    """A package, or a project if `package` is empty."""

    project: str
    package: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether these are possible names of a project and, if there is one, a package."""
        return is_name(self.project) and (not self.package or is_name(self.package))

    @property
    def sources(self) -> "PackageRef":
        """The package or project that has the metadata: `hello` for the multibuild flavour
        `hello:qt`, the project for `_project`."""
        if self.package == PROJECT_SOURCES:
            return PackageRef(self.project)
        if self.package.startswith(_WITH_COLON):
            return self
        return PackageRef(self.project, self.package.partition(":")[0])


def is_name(text: str) -> bool:
    """Return whether the text is a possible name of a project or package."""
    return 0 < len(text) <= MAX_LENGTH and text not in (".", "..") and not {"/", "\0"} & {*text}
