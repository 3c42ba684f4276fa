"""Find the repository of a package's sources, from the `<scmsync>` in its metadata."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tailrace.environment.insecure import is_loopback

_SEGMENT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,255}")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
MAX_SEGMENTS = 20


class NoLink(ValueError):
    """The package has no usable link to a repository. The message is the reason."""


@dataclass(frozen=True, slots=True)
class ScmLink:
    """A repository, and the revision of it that is built."""

    host: str
    """The host as in SCM_TOKENS: in lower case, with the port if the URL has one."""
    path: str
    """`owner/repository`. At GitLab, the owner may consist of several nested groups."""
    revision: str = ""
    """The branch, tag or commit that the link names; empty if it names none."""
    encrypted: bool = True

    @property
    def commit(self) -> str:
        """The commit that the link names; empty if it names another revision or none."""
        return self.revision if is_commit(self.revision) else ""


def scm_link(scmsync: str) -> ScmLink:
    """Return the repository of `https://host/owner/repository?subdir=x#revision`, the format of
    obs-scm-bridge. A login in the URL is ignored. Raises NoLink."""
    if not scmsync:
        raise NoLink("the package has no SCM link (<scmsync> in its metadata)")
    try:
        parts = urlsplit(scmsync.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise NoLink("the package's SCM link is not a URL") from None
    if parts.scheme not in ("https", "http") or not host:
        raise NoLink("the package's SCM link is not an https:// URL")
    if parts.scheme == "http" and not is_loopback(host):
        raise NoLink("the package's SCM link is http://, which is not encrypted: no token is sent")
    segments = parts.path.removesuffix("/").removesuffix(".git").strip("/").split("/")
    if not 2 <= len(segments) <= MAX_SEGMENTS or not all(map(_SEGMENT.fullmatch, segments)):
        raise NoLink("the package's SCM link does not name a repository, as in owner/repository")
    name = f"[{host}]" if ":" in host else host
    return ScmLink(
        host=name if port is None else f"{name}:{port}",
        path="/".join(segments),
        revision=parts.fragment[:255],
        encrypted=parts.scheme == "https",
    )


def is_commit(text: str) -> bool:
    """Return whether the text is the full hash of a commit, SHA-1 or SHA-256."""
    return bool(_COMMIT.fullmatch(text))
