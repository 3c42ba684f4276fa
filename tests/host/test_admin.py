"""The overview and the admin's pages in a project of somebody else: in Django's own admin, on a
site of the project's own, with unfold, and without any admin."""

import json
import re
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.host.conftest import Host
from tests.servers.installed_wheel import Installed

pytestmark = [pytest.mark.slow, pytest.mark.once]

Pages = dict[str, tuple[int, str, str]]
"""The status of each page, where it leads to, and its text, by its address."""
JOBS = "/admin/tailrace_jobs/job/"
RUN = "/admin/tailrace_jobs/queue/jobs.remind/run/"


@pytest.fixture(scope="module")
def shown(host: Host) -> Callable[[str], Pages]:
    """Return a function that returns all pages of a variant, each of which can be shown."""
    if not isinstance(host.installed, Installed):
        pytest.skip("unfold is added to an environment of this test's own")
    host.installed._link(distribution("django-unfold"))
    done = host.run("admin_pages.py", "", "rows")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr

    def show(variant: str) -> Pages:
        file = host.installed.work / f"{variant}.json"
        done = host.run("admin_pages.py", str(file), variant)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr
        pages: Pages = json.loads(Path(file).read_text())
        odd = {name: page[0] for name, page in pages.items() if page[0] != 200}
        assert odd.pop("anonymous") == 302
        assert odd == ({} if variant == "none" else {f"{RUN} POST": 422})
        return pages

    return show


def text_of(pages: Pages, *parts: str) -> str:
    """Return the text of the page with these parts in its address, and no other such page."""
    [text] = [page[2] for name, page in pages.items() if all(part in name for part in parts)]
    return text


def pages_of(pages: Pages, model: str) -> list[str]:
    """Return the pages of single rows of a model of the admin."""
    return [page[2] for name, page in pages.items() if f"/{model}/" in name and "change" in name]


def assert_operable(pages: Pages) -> None:
    """Assert that the pages have what an operator needs, in any theme."""
    jobs = pages[JOBS][2]
    for column in ("jobs.remind", "running", "/4", "Search terms", "Older"):
        assert column in jobs
    assert "matching" in jobs
    failed = next(text for text in pages_of(pages, "job") if "there is no vacancy -1" in text)
    for part in ("Replay", "Payload", "Time spent", "Log of claim 1", "looks for the people"):
        assert part in failed
    running = pages[JOBS + "?state=running&lane=none"]
    assert "By lane" in running[2]
    flow = text_of(pages, "flow/1/change")
    for part in ("look them up: ", "30 × tell", "Pause", "runs after a failure", "tr-node"):
        assert part in flow
    assert "A new flow with 35 jobs is created" in text_of(pages, "flow/1/replay")
    queue = text_of(pages, "queue/jobs.remind/change")
    for part in ("Run now", "Pause", "Running now", "rate_limit", "Last failures", "celery@board"):
        assert part in queue
    group = next(text for text in pages_of(pages, "failuregroup") if "Permanent" in text)
    for part in ("ann@board.example", "Silence until", "Replay these 2", "Latest failed jobs"):
        assert part in group
    assert "missed" in text_of(pages, "slot/1/change")
    own = next(text for text in pages_of(pages, "schedule") if "remind each morning" in text)
    assert "Last slots" in own
    assert 'name="cron"' in own
    assert "The title occurs twice." in "".join(pages_of(pages, "event"))
    assert "Acknowledge" in "".join(pages_of(pages, "event"))
    assert "degraded" in pages["/admin/tailrace_jobs/breaker/"][2]
    assert 'name="payload-vacancy"' in pages[RUN][2]
    assert "s number." in pages[RUN][2]
    wrong = pages[f"{RUN} POST"][2]
    assert "Enter a whole number" in wrong or "Bitte eine ganze Zahl eingeben" in wrong
    assert "Pause: 4 queues" in pages["/admin/tailrace_jobs/queue/ POST"][2]
    assert "Replay 2 jobs" in text_of(pages, "all/replay")
    assert "ann@board.example" in text_of(pages, "/replays/")
    overview = pages["/tailrace/"][2]
    for part in (f'href="{JOBS}', "Sign out", "ann@board.example", "jobs.announce", "Acknowledge"):
        assert part in overview
    assert "celery@board" in pages["/tailrace/overview/workers"][2]


def assert_loads(page: str, *names: str) -> None:
    """Assert that the page loads these of our files, and none of the others of these kinds."""
    kinds = r"tailrace/jobs/(tailrace|state_badges|stock_admin|htmx\.min|admin)\.(?:css|js)"
    assert sorted(re.findall(kinds, page)) == sorted(names)


def test_djangos_own_admin_has_every_page_with_our_styles(
    shown: Callable[[str], Pages],
) -> None:
    pages = shown("stock")
    assert_operable(pages)
    assert pages["anonymous"][1] == "/admin/login/?next=/tailrace/"
    ours = ("tailrace", "state_badges", "stock_admin", "htmx.min", "admin")
    for name, page in pages.items():
        if name.startswith("/admin/tailrace") and "history" not in name and "add" not in name:
            assert_loads(page[2], *ours)
    assert_loads(pages["/admin/"][2])
    assert '<span class="tr-state tr-running">running</span>' in pages[JOBS + "?state=running"][2]
    assert '<td class="field-enabled">' in pages["/admin/tailrace_jobs/schedule/"][2]
    assert "Change failure" in "".join(pages_of(pages, "failuregroup"))


@pytest.mark.long
def test_a_site_of_the_projects_own_has_every_page_in_its_language(
    shown: Callable[[str], Pages],
) -> None:
    pages = shown("own")
    assert_operable(pages)
    for name in (JOBS, RUN, "/admin/tailrace_jobs/queue/ POST"):
        assert "The job board&#x27;s own admin" in pages[name][2]
    assert "Alle matching jobs auswählen" in pages[JOBS][2]


@pytest.mark.long
def test_with_unfold_the_pages_are_unfolds_and_have_our_styles(
    shown: Callable[[str], Pages],
) -> None:
    pages = shown("unfold")
    assert_operable(pages)
    for name in (JOBS, RUN, "/admin/tailrace_jobs/queue/jobs.remind/change/"):
        assert "unfold/css/styles" in pages[name][2]
        assert_loads(pages[name][2], "tailrace", "state_badges")


def test_without_an_admin_the_overview_has_no_links_to_it(
    shown: Callable[[str], Pages],
) -> None:
    pages = shown("none")
    assert set(pages) > {"/tailrace/", "/tailrace/overview/workers", "/tailrace/overview/storage"}
    overview = pages["/tailrace/"][2]
    for part in ("jobs.remind", "there is no vacancy -1", "ann@board.example", "Storage"):
        assert part in overview
    assert "Sign out" not in overview
    assert "celery -A config worker -n worker1@%h" in pages["without workers"][2]
    assert not [name for name, page in pages.items() if "/admin/" in page[2]]
    assert pages["anonymous"][1] == "/accounts/login/?next=/tailrace/"
