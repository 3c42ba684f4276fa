"""Take the pictures of README.md and docs/ from the demo of `make run`: `make pictures`.

The demo runs until some hundred jobs have completed. The figures of the hour before it, which its
charts show, are made up.
With --check, nothing is taken: the exit status is 1 if a page has changed since its picture.
"""

import argparse
import hashlib
import os
import random
import shutil
import sys
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
MARK = IMAGES / "pages.sha256"
"""The fingerprint of the pages when their pictures were taken."""
SOURCES = ("jobs/platform/pages/templates/tailrace/jobs", "jobs/platform/pages/static")
"""The folders with the look of the pages."""
JOBS, SECONDS = 500, 180
"""The number of completed jobs, and how long to wait for them."""
WIDTH, HEIGHT = 1440, 900
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def fingerprint() -> str:
    """Return a number that changes when a file with the look of the pages does."""
    digest = hashlib.sha256()
    for path in sorted(file for folder in SOURCES for file in (ROOT / folder).rglob("*.*")):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()


def take() -> None:
    """Run the demo, and write the pictures and the fingerprint."""
    sys.path.insert(0, str(ROOT))
    from tests.servers.platform import running_platform

    with running_platform() as platform:
        platform.until(
            lambda: platform.health().get("jobs", {}).get("completed", 0) >= JOBS,
            SECONDS,
            f"fewer than {JOBS} jobs have completed",
        )
        os.environ.update(platform.environment())
        add_figures()
        password = (platform.var / "admin_password").read_text().strip()
        take_board(f"http://127.0.0.1:{platform.web}", password)
    MARK.write_text(f"{fingerprint()}\n")


def add_figures() -> None:
    """Replace the figures of all queues for the minutes of the hour before the demo began."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tailrace.config.settings")
    django.setup()
    from tailrace.db import clock
    from tailrace.jobs.models.queue_period import ALL_QUEUES, MINUTE, QueuePeriod

    chance = random.Random(7)  # noqa: S311 - figures of a picture
    now = clock.now().replace(second=0, microsecond=0)
    rows = []
    for minute in range(3, 62):
        jobs = chance.randint(90, 150) + (120 if 20 < minute < 28 else 0)
        rows.append(
            QueuePeriod(
                queue=ALL_QUEUES, seconds=MINUTE, at=now - timedelta(minutes=minute),
                completed=jobs, retried=chance.randint(0, 6), failed=int(chance.random() < 0.05),
                busy_ms=jobs * 40, events=jobs // 4, due=chance.randint(0, 12),
                wait={"9": jobs * 9 // 10, "16": jobs // 10},
                run={"14": jobs * 9 // 10, "21": jobs // 10},
            )
        )  # fmt: skip
    empty = QueuePeriod.objects.filter(queue=ALL_QUEUES, seconds=MINUTE)
    empty.filter(at__in=[row.at for row in rows]).delete()
    QueuePeriod.objects.bulk_create(rows)


def take_board(address: str, password: str) -> None:
    """Sign in, and take the picture of the overview."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"{address}/accounts/login/?next=/")
        page.fill("input[name=username]", "admin")
        page.fill("input[name=password]", password)
        page.click("button[type=submit]")
        page.wait_for_selector("text=Queues")
        page.screenshot(path=IMAGES / "board.png")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare the fingerprint")
    if parser.parse_args().check:
        sys.exit(MARK.read_text().strip() != fingerprint())
    take()
