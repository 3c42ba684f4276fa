"""refresh: bring what we keep of a package and its project up to what the backend says now."""

from collections.abc import Iterable

from django.db import transaction

from domains.builds import projects
from domains.builds.metadata import Holder, Meta, Metadata, NotFound, SourceInfo
from domains.builds.models import Package, PackageLink, Project, RoleHolder
from events import clock

PROJECT_ITSELF = "_project"
"""The package in which a project's own sources lie: it has no metadata of its own."""


def refresh_project(asked: Metadata, backend: str, project: str, event_id: int) -> bool:
    """Ask for a project's metadata and keep it; False: it is gone, as of the event."""
    try:
        meta = asked.project_meta(project)
    except NotFound:
        projects.mark([(backend, project, False, event_id)])
        return False
    with transaction.atomic():
        Project.objects.update_or_create(
            defaults={"title": meta.title, "hidden": meta.hidden, "refreshed_at": clock.now()},
            backend=backend,
            name=project,
        )
        _keep_holders(backend, project, "", meta.holders)
    return True


def keep_package(backend: str, project: str, package: str, meta: Meta, info: SourceInfo) -> bool:
    """Keep what was fetched; return whether its sources are other ones than before.

    In the caller's transaction.
    """
    before = _kept(backend, project, package)
    kept, _created = Package.objects.update_or_create(
        defaults={
            "title": meta.title,
            "devel_project": meta.devel_project,
            "devel_package": meta.devel_package,
            "srcmd5": info.srcmd5,
            "verifymd5": info.verifymd5,
            "rev": info.rev,
            "vrev": info.vrev,
            "error": info.error,
            "gone_at": None,
            "refreshed_at": clock.now(),
        },
        backend=backend,
        project=project,
        name=package,
    )
    _keep_links(kept, info.links)
    _keep_holders(backend, project, package, meta.holders)
    return _sources(before) != _sources(kept)


def mark_gone(backend: str, project: str, package: str) -> bool:
    """Note that a package is not there; return whether it was until now, as far as we knew."""
    RoleHolder.objects.filter(backend=backend, project=project, package=package).delete()
    known, created = Package.objects.get_or_create(
        defaults={"gone_at": clock.now()}, backend=backend, project=project, name=package
    )
    known.links.all().delete()
    there = Package.objects.filter(pk=known.pk, gone_at=None)
    return bool(not created and there.update(gone_at=clock.now()))


def linking_to(backend: str, project: str, package: str) -> list[tuple[str, str]]:
    """Return (project, package) of the packages whose sources are made of this one's."""
    links = PackageLink.objects.filter(project=project, name=package, package__backend=backend)
    return list(
        links.order_by("package_id").values_list("package__project", "package__name").distinct()
    )


def _kept(backend: str, project: str, package: str) -> Package | None:
    rows = Package.objects.filter(backend=backend, project=project, name=package)
    return rows.select_for_update().first()


def _sources(package: Package | None) -> tuple[str, ...]:
    if package is None or package.gone_at is not None:
        return ()
    return package.srcmd5, package.verifymd5, package.error


def _keep_links(package: Package, links: Iterable[tuple[str, str]]) -> None:
    wanted = {link for link in links if all(link)}
    there = {(link.project, link.name): link.pk for link in package.links.all()}
    PackageLink.objects.filter(pk__in=[there[link] for link in there.keys() - wanted]).delete()
    PackageLink.objects.bulk_create(
        [PackageLink(package=package, project=p, name=n) for p, n in wanted - there.keys()],
        ignore_conflicts=True,
    )


def _keep_holders(backend: str, project: str, package: str, wanted: frozenset[Holder]) -> None:
    rows = RoleHolder.objects.filter(backend=backend, project=project, package=package)
    there = {Holder(row.role, row.user, row.group): row.pk for row in rows}
    RoleHolder.objects.filter(pk__in=[there[one] for one in there.keys() - wanted]).delete()
    RoleHolder.objects.bulk_create(
        [
            RoleHolder(
                backend=backend,
                project=project,
                package=package,
                role=holder.role,
                user=holder.user,
                group=holder.group,
            )
            for holder in wanted - there.keys()
        ],
        ignore_conflicts=True,
    )
