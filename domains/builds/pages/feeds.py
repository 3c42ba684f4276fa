"""The public feed of a project's latest commits."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.contrib.syndication.views import Feed
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition, require_safe

from tailrace.domains.builds.audience.visibility import ProjectRef, readers_of_projects
from tailrace.domains.builds.event_types.package import Commit
from tailrace.domains.builds.models import Project, ProjectLogEntry
from tailrace.net.sanitize import printable
from tailrace.web.pages.frame import for_everybody

MAX_COMMITS = 50


@dataclass(frozen=True, slots=True)
class PublicProject:
    """A project that everybody may read."""

    name: str
    backends: frozenset[str]
    """Backends on which the project is public. Another backend may have a hidden project of the
    same name."""

    def commits(self) -> QuerySet[ProjectLogEntry]:
        """Return the log entries of the project's latest commits, newest first."""
        entries = ProjectLogEntry.objects.filter(project=self.name, type=Commit.name)
        return entries.filter(backend__in=self.backends).order_by("-event")[:MAX_COMMITS]


def public_project(name: str) -> PublicProject | None:
    """Return the project with the backends on which it is public; None if there are none. Only
    backends on which it exists or has a log are considered."""
    if printable(name) != name:
        return None
    existing = Project.objects.filter(name=name, exists=True)
    logged = ProjectLogEntry.objects.filter(project=name).order_by("-event")
    backends = {*existing.values_list("backend", flat=True)}
    backends |= {*logged.values_list("backend", flat=True)[:MAX_COMMITS]}
    projects = [ProjectRef(backend, name) for backend in backends]
    readers = readers_of_projects(projects)
    public = frozenset(project.backend for project in projects if readers[project] is None)
    return PublicProject(name, public) if public else None


class CommitFeed(Feed):
    """An Atom feed of the latest commits to the packages of one project."""

    feed_type = Atom1Feed
    description_template = None

    def get_object(self, request: HttpRequest, project: PublicProject) -> PublicProject:
        return project

    def title(self, project: PublicProject) -> str:
        return f"Commits in {project.name}"

    def subtitle(self, project: PublicProject) -> str:
        return f"The latest {MAX_COMMITS} commits to packages of {project.name}"

    def link(self, project: PublicProject) -> str:
        return _feed_url(project.name)

    feed_url = link

    def feed_guid(self, project: PublicProject) -> str:
        return _tag_uri(f"project/{quote(project.name)}")

    def items(self, project: PublicProject) -> Iterable[ProjectLogEntry]:
        return project.commits()

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
        return f"{_feed_url(entry.project)}#event-{entry.event_id}"

    def item_guid(self, entry: ProjectLogEntry) -> str:
        return _tag_uri(f"event/{entry.event_id}")

    def item_author_name(self, entry: ProjectLogEntry) -> str:
        return printable(entry.user) or "unknown"

    def item_pubdate(self, entry: ProjectLogEntry) -> datetime:
        return entry.occurred_at

    item_updateddate = item_pubdate


def _feed_url(project: str) -> str:
    return settings.PUBLIC_URL + reverse("builds:commit_feed", args=[project])


def _tag_uri(path: str) -> str:
    """Return a tag URI (RFC 4151): an id that stays the same when the feed's URL path changes."""
    return f"tag:{urlsplit(settings.PUBLIC_URL).hostname},2026:{path}"


@require_safe
@for_everybody
@cache_control(public=True, max_age=60)
def commit_feed(request: HttpRequest, project: str) -> HttpResponseBase:
    """GET /feeds/projects/PROJECT.atom: 200, 304 or 412 by ETag and time, or 404. It is always 404
    for a hidden project, as for one that does not exist."""
    public = public_project(project)
    if public is None:
        raise Http404
    rows = list(public.commits().values_list("event_id", "occurred_at"))
    etag = f'"{rows[0][0]}-{rows[-1][0]}-{len(rows)}"' if rows else None
    latest = max(time for _id, time in rows).astimezone(UTC) if rows else None
    view = condition(etag_func=lambda *_: etag, last_modified_func=lambda *_: latest)(_feed)
    return view(request, public)


_feed = CommitFeed()
