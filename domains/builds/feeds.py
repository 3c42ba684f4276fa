"""Feeds that anyone may read: a project's latest commits."""

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

from domains.builds.event_types import Commit
from domains.builds.models import Project, ProjectLogEntry
from subscriptions.text import printable

LATEST = 50


def commits(project: str) -> Any:
    """Return the project's latest commits, newest first."""
    entries = ProjectLogEntry.objects.filter(project=project, type=Commit.name)
    if printable(project) != project:
        return entries.none()
    return entries.order_by("-event")[:LATEST]


class CommitFeed(Feed):
    """An Atom feed of the latest commits to the packages of one project."""

    feed_type = Atom1Feed
    description_template = None

    def get_object(self, request: HttpRequest, project: str) -> str:
        if not _known(project):
            raise Http404(f"no project {project!r} is known here")
        return project

    def title(self, project: str) -> str:
        return f"Commits in {printable(project)}"

    def subtitle(self, project: str) -> str:
        return f"The latest {LATEST} commits to packages of {printable(project)}"

    def link(self, project: str) -> str:
        return settings.PUBLIC_URL + reverse("builds:commit_feed", args=[project])

    def feed_url(self, project: str) -> str:
        return self.link(project)

    def feed_guid(self, project: str) -> str:
        return _tag(f"project/{quote(project)}")

    def items(self, project: str) -> Iterable[ProjectLogEntry]:
        return commits(project)

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

    def item_updateddate(self, entry: ProjectLogEntry) -> datetime:
        return entry.occurred_at


def _known(project: str) -> bool:
    if printable(project) != project:
        return False
    if Project.objects.filter(name=project, hidden=True).exists():
        return False
    return (
        ProjectLogEntry.objects.filter(project=project).exists()
        or Project.objects.filter(name=project, exists=True).exists()
    )


def _tag(what: str) -> str:
    """Return an id that stays the same wherever Tailrace is moved within its host (RFC 4151)."""
    return f"tag:{urlsplit(settings.PUBLIC_URL).hostname},2026:{what}"


def _latest(project: str) -> tuple[str, datetime] | None:
    found = list(commits(project).values_list("event_id", "occurred_at"))
    if not found:
        return None
    return f'"{found[0][0]}-{found[-1][0]}-{len(found)}"', max(when for _id, when in found)


def _etag(request: HttpRequest, project: str) -> str | None:
    latest = _latest(project)
    return latest[0] if latest else None


def _last_modified(request: HttpRequest, project: str) -> datetime | None:
    latest = _latest(project)
    return latest[1].astimezone(UTC) if latest else None


commit_feed = require_safe(
    cache_control(public=True, max_age=60)(
        condition(etag_func=_etag, last_modified_func=_last_modified)(CommitFeed())
    )
)
