"""The bodies of requests that the platform accepts: how large, from whom, how fast and how many at
once. The web server (`tailrace.config.servers.worker`) and the apps keep to these limits, and
docs/reference/platform/accounts.md lists them.

- up to SMALL: anybody, at every address; such a body stays in memory;
- up to LARGE: signed-in users, as many bytes as the address allows;
- above LARGE: the same, but only few arrive at once, and they must be sent faster.

The addresses that allow more than ordinary ones are the UploadPaths in the apps' modules
`upload_paths`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.conf import settings

from tailrace.environment.discovery import import_modules

SMALL = 64 * 1024
"""Maximum size of a body from somebody who is not signed in."""
LARGE = 64 * 1024 * 1024
"""Size above which a body is large."""
SLOWEST, SLOWEST_LARGE = 16 * 1024, 128 * 1024
"""Minimum rate of a body and of a large one, in bytes per second."""
UNFINISHED_SMALL = 64
"""Maximum number of small bodies that arrive at once in a web process from one network."""
MAX_SPOOLED = 512 * 1024 * 1024
"""Maximum bytes that have arrived in a web process of unfinished bodies, without small and large
ones."""
LARGE_AT_ONCE = 2
"""Maximum number of large bodies that arrive at once in a web process; one for each user."""
FORM_BYTES = 65_536
"""Maximum bytes of a form without its files."""
SIGN_IN, API = "/accounts/", "/api/"
"""Addresses of the sign-in pages and of the API begin with these."""


def max_bytes(setting: str) -> int:
    """Return the maximum bytes of the files of an upload, from a setting in megabytes."""
    return int(getattr(settings, setting) * 1_000_000)


class UploadPaths:
    """Addresses where signed-in users upload files. `setting` is the maximum size of the files in
    megabytes; `files_bytes` is the maximum if no setting says it, and `limit` describes it. A form
    may have `form_bytes` besides the files."""

    def __init__(
        self,
        *paths: str,
        setting: str = "",
        files_bytes: int = 0,
        limit: str = "",
        form_bytes: int = FORM_BYTES,
    ) -> None:
        self.paths = paths
        self.limit = setting or limit
        self.form_bytes = form_bytes
        self._files_bytes: Callable[[], int] = (
            partial(max_bytes, setting) if setting else lambda: files_bytes
        )

    @property
    def files_bytes(self) -> int:
        """Maximum size of the files together."""
        return self._files_bytes()

    @property
    def body_bytes(self) -> int:
        """Maximum size of the body."""
        return self.files_bytes + self.form_bytes


@dataclass(frozen=True)
class BodyLimit:
    """The longest body that an address accepts from a signed-in user."""

    longest: int
    app_refuses: bool
    """Whether the app refuses a longer body, and the body of a stranger, from the head only. Then
    the answer is a page or a problem; otherwise the web server refuses it."""


class BodyLimits:
    """The limits of all addresses, by the settings and by the UploadPaths of the installed apps.
    All apps must be loaded."""

    def __init__(self) -> None:
        self._uploads = {
            path.encode(): BodyLimit(upload.body_bytes, app_refuses=True)
            for upload in upload_paths()
            for path in upload.paths
        }
        self._api = BodyLimit(settings.API_MAX_BODY_BYTES, app_refuses=True)
        self._page = BodyLimit(settings.DATA_UPLOAD_MAX_MEMORY_SIZE, app_refuses=False)
        self._sign_in = BodyLimit(SMALL, app_refuses=False)

    def of(self, path: bytes) -> BodyLimit:
        """Return the limit of a path, as it is in the request line, without its query."""
        if upload := self._uploads.get(path):
            return upload
        if path.startswith(API.encode()):
            return self._api
        return self._sign_in if path.startswith(SIGN_IN.encode()) else self._page


def upload_paths() -> list[UploadPaths]:
    """Return the UploadPaths that the installed apps declare."""
    return [
        value
        for module in import_modules("upload_paths")
        for value in vars(module).values()
        if isinstance(value, UploadPaths)
    ]
