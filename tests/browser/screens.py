"""What a page looks like: whether it fits its window and can be read, and pictures of it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS = (1440, 375)
LOOKS: tuple[tuple[int, Scheme], ...] = ((1440, "light"), (375, "dark"))
"""A large and a small screen, which have both widths and both schemes: each page is looked at on
both, whatever screen the test uses it on."""
SCREENS = [
    (375, "dark"),
    *(
        pytest.param(width, scheme, marks=pytest.mark.long)
        for width, scheme in ((1440, "light"), (1440, "dark"), (375, "light"))
    ),
]
"""The screens that pages are used on. The small one, on which less can be hit, is in each run."""
PICTURES = os.environ.get("PICTURES", "")
"""A folder for pictures of each page, to look at."""
_IS_DARK = "matchMedia('(prefers-color-scheme: dark)').matches"

# The least contrast of text with what is behind it (WCAG 2.1, 1.4.3), worked out in the page.
_CONTRAST = """
() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { rgb: [r, g, b], a };
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let node = element; node; node = node.parentElement) {
      const { rgb, a } = parse(getComputedStyle(node).backgroundColor);
      if (a > 0.99) return rgb;
    }
    return parse(getComputedStyle(document.documentElement).backgroundColor).rgb;
  };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !element.checkVisibility()) continue;
    const [a, b] = [parse(getComputedStyle(element).color).rgb, behind(element)].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${walk.currentNode.data.trim().slice(0, 40)}`);
  }
  return bad;
}
"""
# Targets of a finger or a mouse: at least 24 by 24 (WCAG 2.2, 2.5.8), but for links within text.
_SMALL = """
() => [...document.querySelectorAll("button, select, summary, .me-word, input")]
  .filter((one) => one.checkVisibility() && one.type !== "hidden" && !one.closest("label"))
  .map((one) => [one.getBoundingClientRect(), one])
  .filter(([box]) => box.width < 24 || box.height < 24)
  .map(([box, one]) => `${box.width.toFixed(0)}×${box.height.toFixed(0)} ${one.outerHTML}`)
"""


def on_each_screen(page: Page) -> Iterator[str]:
    """Show the page on each screen of LOOKS and, last, on its own; yield the screen's name."""
    size = page.viewport_size
    assert size
    own: Scheme = "dark" if page.evaluate(_IS_DARK) else "light"
    used_on = size["width"], own
    for width, scheme in (*(screen for screen in LOOKS if screen != used_on), used_on):
        show_on(page, width, scheme)
        yield f"{width}-{scheme}"


def show_on(page: Page, width: int, scheme: Scheme) -> None:
    """Show the page in a window of that width, in that colour scheme."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})


def assert_fits(page: Page, name: str = "") -> None:
    """Assert that nobody has to scroll sideways, on either screen."""
    for screen in on_each_screen(page):
        _assert_fits(page, f"{name or page.url} on {screen}")


def _assert_fits(page: Page, name: str) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, f"{name} is {wide} px too wide"


def take_picture(page: Page, name: str, whole: bool = True) -> None:
    """Keep a picture of the page, or of what the window shows of it, if pictures are wanted."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=whole)


def look_at(page: Page, name: str, whole: bool = True) -> None:
    """Assert that the page fits, and that its text can be read and its buttons be hit, on either
    screen; keep pictures."""
    for screen in on_each_screen(page):
        look_on(page, f"{name}-{screen}", whole)


def look_on(page: Page, name: str, whole: bool = True) -> None:
    """Look at the page on the screen that it is on."""
    take_picture(page, name, whole)
    _assert_fits(page, name)
    assert page.evaluate(_CONTRAST) == [], name
    assert page.evaluate(_SMALL) == [], name


def look(page: Page, name: str) -> None:
    """Check that the page fits at each width and theme; take pictures if they are wanted."""
    for scheme in reversed(SCHEMES):
        page.emulate_media(color_scheme=scheme)
        page.reload()  # the admin chooses its theme when a page is loaded
        for width in WIDTHS:
            show_on(page, width, scheme)
            take_picture(page, f"{name}-{width}-{scheme}")
            _assert_fits(page, f"{name} at {width} px")
