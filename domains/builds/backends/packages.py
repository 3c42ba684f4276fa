"""Read the state of packages and their projects from a backend, and store it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from django.db import transaction

from tailrace.db import clock
from tailrace.domains.builds.backends.client import NotFound
from tailrace.domains.builds.backends.metadata import Holder, Meta, MetadataClient, SourceInfo
from tailrace.domains.builds.backends.projects import ProjectState, record_states
from tailrace.domains.builds.backends.reading import Reading
from tailrace.domains.builds.models import Package, PackageLink, Project, RoleHolder


@dataclass(frozen=True, slots=True)
class PackageState:
    """The state of a package at a backend. If it does not exist, `meta` and `info` are None."""

    backend: str
    project: str
    package: str
    reading: Reading
    meta: Meta | None = None
    info: SourceInfo | None = None


def refresh_project(client: MetadataClient, project: str, event_id: int) -> bool:
    """Read and store a project's metadata because of an event; return whether it exists."""
    reading = Reading.begin(client.name, project)
    try:
        meta = client.project_meta(project)
    except NotFound:
        with transaction.atomic():
            record_states([ProjectState(client.name, project, False, event_id)])
            reading.finish()
        return False
    with transaction.atomic():
        row, _created = Project.objects.select_for_update().get_or_create(
            backend=client.name, name=project
        )
        if reading.is_newest(row.refreshed_at):
            row.title, row.hidden, row.refreshed_at = meta.title, meta.hidden, reading.began
            row.save(update_fields=["title", "hidden", "refreshed_at"])
            _store_holders(client.name, project, "", meta.holders)
            reading.finish()
    return True


def read_package(client: MetadataClient, project: str, package: str) -> PackageState:
    """Read the current state of a package; `store_package` stores it."""
    reading = Reading.begin(client.name, project, package)
    try:
        meta = client.package_meta(project, package)
        info = client.source_info(project, package)
    except NotFound:
        return PackageState(client.name, project, package, reading)
    return PackageState(client.name, project, package, reading, meta, info)


def store_package(state: PackageState) -> bool:
    """Store a package's state in the caller's transaction, unless the stored state is from a later
    read; return whether its sources changed."""
    row, created = Package.objects.select_for_update().get_or_create(
        backend=state.backend, project=state.project, name=state.package
    )
    if not state.reading.is_newest(row.refreshed_at):
        return False
    sources_before = () if created else _sources(row)
    holders: frozenset[Holder] = frozenset()
    links: Iterable[tuple[str, str]] = ()
    if state.meta is None or state.info is None:
        row.gone_at = row.gone_at or clock.now()
    else:
        sources = asdict(state.info)
        links = sources.pop("links")
        for name, value in sources.items():
            setattr(row, name, value)
        row.title, row.scmsync = state.meta.title, state.meta.scmsync
        row.devel_project, row.devel_package = state.meta.devel_project, state.meta.devel_package
        row.gone_at = None
        holders = state.meta.holders
    row.refreshed_at = state.reading.began
    row.save()
    _store_links(row, links)
    _store_holders(state.backend, state.project, state.package, holders)
    state.reading.finish()
    return sources_before != _sources(row)


def linking_to(backend: str, project: str, package: str) -> list[tuple[str, str]]:
    """Return (project, package) of the packages that link to this one."""
    links = PackageLink.objects.filter(project=project, name=package, package__backend=backend)
    names = links.order_by("package_id").values_list("package__project", "package__name")
    return list(names.distinct())


def _sources(package: Package) -> tuple[str, ...]:
    """Return the values that identify the state of the package's sources; () if it is gone."""
    if package.gone_at is not None:
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
