"""The public feed of a project's latest commits."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.contrib.syndication.views import Feed
from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition, require_safe

from domains.builds.event_types.package import Commit
from domains.builds.models import Project, ProjectLogEntry
from net.sanitize import printable

MAX_COMMITS = 50


def commit_entries(project: str) -> Any:
    """Return the log entries of the project's latest commits, newest first."""
    entries = ProjectLogEntry.objects.filter(project=project, type=Commit.name)
    if printable(project) != project:
        return entries.none()
    return entries.order_by("-event")[:MAX_COMMITS]


class CommitFeed(Feed):
    """An Atom feed of the latest commits to the packages of one project."""

    feed_type = Atom1Feed
    description_template = None

    def get_object(self, request: HttpRequest, project: str) -> str:
        if not _known(project):
            raise Http404(f"unknown project {project!r}")
        return project

    def title(self, project: str) -> str:
        return f"Commits in {printable(project)}"

    def subtitle(self, project: str) -> str:
        return f"The latest {MAX_COMMITS} commits to packages of {printable(project)}"

    def link(self, project: str) -> str:
        return settings.PUBLIC_URL + reverse("builds:commit_feed", args=[project])

    feed_url = link

    def feed_guid(self, project: str) -> str:
        return _tag(f"project/{quote(project)}")

    def items(self, project: str) -> Iterable[ProjectLogEntry]:
        return commit_entries(project)

    def item_title(self, entry: ProjectLogEntry) -> str:
        comment = printable(str(entry.details.get("comment", ""))).strip()
        first_line = comment.splitlines()[0] if comment else "new revision"
        return f"{printable(entry.package)}: {first_line}"

    def item_description(self, entry: ProjectLogEntry) -> str:
        rev = f"Revision {entry.details['rev']}" if entry.details.get("rev") else "New revision"
        by = f" by {entry.user}" if entry.user else ""
        request = f", request {entry.request}" if entry.request else ""
        return printable(f"{rev}{by}{request}\n\n{entry.details.get('comment', '')}".strip())

    def item_link(self, entry: ProjectLogEntry) -> str:
        return f"{self.link(entry.project)}#event-{entry.event_id}"

    def item_guid(self, entry: ProjectLogEntry) -> str:
        return _tag(f"event/{entry.event_id}")

    def item_author_name(self, entry: ProjectLogEntry) -> str:
        return printable(entry.user) or "unknown"

    def item_pubdate(self, entry: ProjectLogEntry) -> datetime:
        return entry.occurred_at

    item_updateddate = item_pubdate


def _known(project: str) -> bool:
    if printable(project) != project or Project.objects.filter(name=project, hidden=True).exists():
        return False
    return (
        ProjectLogEntry.objects.filter(project=project).exists()
        or Project.objects.filter(name=project, exists=True).exists()
    )


def _tag(path: str) -> str:
    """Return an id that stays the same when the feed's path changes (RFC 4151)."""
    return f"tag:{urlsplit(settings.PUBLIC_URL).hostname},2026:{path}"


def _latest(project: str) -> tuple[str | None, datetime | None]:
    """Return the feed's ETag and the time of its latest commit."""
    rows = list(commit_entries(project).values_list("event_id", "occurred_at"))
    if not rows:
        return None, None
    etag = f'"{rows[0][0]}-{rows[-1][0]}-{len(rows)}"'
    return etag, max(time for _id, time in rows).astimezone(UTC)


commit_feed = require_safe(
    cache_control(public=True, max_age=60)(
        condition(
            etag_func=lambda request, project: _latest(project)[0],
            last_modified_func=lambda request, project: _latest(project)[1],
        )(CommitFeed())
    )
)
