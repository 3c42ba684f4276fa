"""Keep the stored state of packages and their projects equal to that of the backend."""

from collections.abc import Iterable
from dataclasses import asdict

from django.db import transaction

from db import clock
from domains.builds.backends.client import NotFound
from domains.builds.backends.metadata import Holder, Meta, MetadataClient, SourceInfo
from domains.builds.backends.projects import ProjectState, record_states
from domains.builds.models import Package, PackageLink, Project, RoleHolder

PROJECT_SOURCES = "_project"
"""The package that contains a project's own sources. It has no metadata of its own."""


def refresh_project(client: MetadataClient, project: str, event_id: int) -> bool:
    """Store a project's current metadata; return False if the project is gone."""
    try:
        meta = client.project_meta(project)
    except NotFound:
        record_states([ProjectState(client.name, project, False, event_id)])
        return False
    with transaction.atomic():
        Project.objects.update_or_create(
            defaults={"title": meta.title, "hidden": meta.hidden, "refreshed_at": clock.now()},
            backend=client.name,
            name=project,
        )
        _store_holders(client.name, project, "", meta.holders)
    return True


def store_package(backend: str, project: str, package: str, meta: Meta, info: SourceInfo) -> bool:
    """Store a package's state in the caller's transaction; return whether its sources changed."""
    rows = Package.objects.filter(backend=backend, project=project, name=package)
    sources = asdict(info)
    links = sources.pop("links")
    before = rows.select_for_update().first()
    after, _created = Package.objects.update_or_create(
        defaults={
            "title": meta.title,
            "devel_project": meta.devel_project,
            "devel_package": meta.devel_package,
            **sources,
            "gone_at": None,
            "refreshed_at": clock.now(),
        },
        backend=backend,
        project=project,
        name=package,
    )
    _store_links(after, links)
    _store_holders(backend, project, package, meta.holders)
    return _sources(before) != _sources(after)


def mark_gone(backend: str, project: str, package: str) -> bool:
    """Record that a package does not exist; return whether it was known to exist before."""
    RoleHolder.objects.filter(backend=backend, project=project, package=package).delete()
    row, created = Package.objects.get_or_create(
        defaults={"gone_at": clock.now()}, backend=backend, project=project, name=package
    )
    row.links.all().delete()
    existing = Package.objects.filter(pk=row.pk, gone_at=None)
    return bool(not created and existing.update(gone_at=clock.now()))


def linking_to(backend: str, project: str, package: str) -> list[tuple[str, str]]:
    """Return (project, package) of the packages that link to this one."""
    links = PackageLink.objects.filter(project=project, name=package, package__backend=backend)
    return list(
        links.order_by("package_id").values_list("package__project", "package__name").distinct()
    )


def _sources(package: Package | None) -> tuple[str, ...]:
    if package is None or package.gone_at is not None:
        return ()
    return package.srcmd5, package.verifymd5, package.error


def _store_links(package: Package, links: Iterable[tuple[str, str]]) -> None:
    new = {link for link in links if all(link)}
    old = {(link.project, link.name): link.pk for link in package.links.all()}
    PackageLink.objects.filter(pk__in=[old[link] for link in old.keys() - new]).delete()
    PackageLink.objects.bulk_create(
        [PackageLink(package=package, project=p, name=n) for p, n in new - old.keys()],
        ignore_conflicts=True,
    )


def _store_holders(backend: str, project: str, package: str, new: frozenset[Holder]) -> None:
    rows = RoleHolder.objects.filter(backend=backend, project=project, package=package)
    old = {Holder(row.role, row.user, row.group): row.pk for row in rows}
    RoleHolder.objects.filter(pk__in=[old[holder] for holder in old.keys() - new]).delete()
    RoleHolder.objects.bulk_create(
        [
            RoleHolder(backend=backend, project=project, package=package, **asdict(holder))
            for holder in new - old.keys()
        ],
        ignore_conflicts=True,
    )
