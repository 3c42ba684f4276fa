"""What may be sent to which address: what the server, the apps, the docs and the proxies share."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from django.test import override_settings
from django.urls import URLPattern, get_resolver, resolve

from tailrace.config.installed_apps import APPS
from tailrace.environment.discovery import import_modules
from tailrace.environment.loading import settings_classes
from tailrace.web import bodies
from tailrace.web.api.auth import Needs
from tailrace.web.api.site import api
from tailrace.web.bodies import BodyLimits, UploadPaths, upload_paths
from tests.kit import ROOT
from tests.servers.gunicorn import web_server

DOMAINS = [app for app in APPS if app.startswith("tailrace.domains.")]
PATHS = [path for paths in upload_paths() for path in paths.paths]


def uploads_of_pages() -> Iterator[tuple[str, UploadPaths]]:
    for pattern, view in _views(get_resolver().url_patterns):
        if paths := getattr(view, "upload_paths", None):
            yield f"/{pattern}", paths


def _views(patterns: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for each in patterns:
        path = prefix + str(each.pattern)
        if isinstance(each, URLPattern):
            yield path, each.callback
        else:
            yield from _views(each.url_patterns, path)


def uploads_of_api() -> Iterator[tuple[str, UploadPaths]]:
    for prefix, router in api._routers:
        for path, view in router.path_operations.items():
            for operation in view.operations:
                for needs in operation.auth_callbacks:
                    if isinstance(needs, Needs) and needs.files:
                        yield f"/api{prefix}{path}", needs.files


def test_whoever_takes_files_declares_its_address() -> None:
    taking = [*uploads_of_pages(), *uploads_of_api()]
    assert all(path in paths.paths for path, paths in taking), taking
    assert sorted(path for path, _ in taking) == sorted(PATHS)


def test_the_longest_body_depends_on_the_address(settings) -> None:
    settings.PHOTOS_MAX_MEGABYTES, settings.API_MAX_BODY_BYTES = 7, 2000
    limits = BodyLimits()
    assert limits.of(b"/photos/upload").longest == 7_000_000 + bodies.FORM_BYTES
    assert limits.of(b"/photos/upload/x").longest == settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert limits.of(b"/api/photos/1").longest == 2000
    assert limits.of(b"/accounts/login/").longest == bodies.SMALL


@pytest.mark.parametrize("domain", DOMAINS)
def test_without_a_domain_its_addresses_are_as_others(domain: str) -> None:
    modules = [module for module in import_modules("upload_paths") if domain in module.__name__]
    gone = [path for module in modules for path in _paths_in(module)]
    rest = [app for app in django_settings.INSTALLED_APPS if app != domain]
    with override_settings(INSTALLED_APPS=rest):
        for owned in settings_classes([domain]):
            for name in owned.model_fields:
                delattr(django_settings, name)
        limits = BodyLimits()
        assert not set(gone) & {path for each in upload_paths() for path in each.paths}
        for path in PATHS:
            assert (path.encode() in limits._uploads) == (path not in gone)


def _paths_in(module: Any) -> list[str]:
    values = vars(module).values()
    return [path for each in values if isinstance(each, UploadPaths) for path in each.paths]


@pytest.mark.once
def test_the_web_starts_without_domains_and_takes_small_bodies_without_a_database(
    tmp_path: Path,
) -> None:
    with web_server(
        tmp_path, "gunicorn", "--config", "tests/servers/small_gunicorn.py",
        "tailrace.config.servers.wsgi", LEFT_OUT=",".join(DOMAINS),
        DJANGO_SETTINGS_MODULE="tailrace.config.settings",
        DATABASE_URL="postgres://nobody@127.0.0.1:1/none",
    ) as server:  # fmt: skip

        def status(size: int) -> int:
            headers = {"Authorization": "Bearer tr_" + "x" * 43}
            body = b"x" * size
            return httpx.post(f"{server.url}/api/x", content=body, headers=headers).status_code

        assert status(bodies.SMALL) == 404, "the API has no such address"
        assert status(bodies.SMALL + 1) == 503, "nobody knows who sends it"


def test_the_docs_list_what_is_declared() -> None:
    page = ROOT / "docs/reference/platform/accounts.md"
    section = page.read_text().split("## Bodies of requests")[1]
    kib, mib = 1024, 1024 * 1024
    small, large = f"{bodies.SMALL // kib} KiB", f"{bodies.LARGE // mib} MiB"
    rates = [f"{rate // kib} KiB" for rate in (bodies.SLOWEST, bodies.SLOWEST_LARGE)]
    space, anybody = f"{bodies.MAX_SPOOLED // mib} MiB", "anybody, at every address"
    unfinished = f"{bodies.UNFINISHED_SMALL} unfinished ones of a client's address"
    rows = [
        f"| up to {small} | {anybody} | {rates[0]} | {unfinished} |",
        f"| up to {large} | signed-in users | {rates[0]} | as many as fit into {space} |",
        f"| above {large} | signed-in users | {rates[1]} | {bodies.LARGE_AT_ONCE},"
        " of different users |",
    ]
    for paths in upload_paths():
        limit = f"`{paths.limit}`" if hasattr(django_settings, paths.limit) else paths.limit
        rows.append(f"| {', '.join(f'`{path}`' for path in paths.paths)} | {limit} |")
    assert [row for row in section.splitlines() if row.startswith(("| up", "| above", "| `/"))] == [
        *rows, f"| `{bodies.SIGN_IN}` | {small} |",
    ]  # fmt: skip


def test_the_proxies_let_pass_what_is_declared() -> None:
    nginx = (ROOT / "config/servers/nginx.conf").read_text()
    caddy = (ROOT / "config/servers/Caddyfile").read_text()
    [(pattern, most_large)] = re.findall(
        r"location ~ (\S+) \{\s+client_max_body_size (\d+)m;", nginx
    )
    [most] = re.findall(r"\n    client_max_body_size (\d+)m;", nginx)
    [large, others] = re.findall(r"max_size (\d+)MB", caddy)
    [matched, unmatched] = re.findall(r"@\w+ (?:not )?path (.*)", caddy)
    assert matched == unmatched
    for paths in upload_paths():
        for path in paths.paths:
            is_large = bool(re.search(pattern, path))
            assert paths.body_bytes <= int(most_large if is_large else most) * 1024 * 1024
            assert is_large == (path in matched.split())
            assert paths.body_bytes <= int(large if is_large else others) * 1_000_000
            assert resolve(path)
