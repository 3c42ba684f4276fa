"""axe-core in the pages of a browser: what people who use assistive technology cannot use."""

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

_SCRIPT = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
_RUN = """
async ([only, besides]) => (await axe.run(
  {include: [["html"]], exclude: besides.map((selector) => [selector])},
  {runOnly: only, resultTypes: ["violations"]},
)).violations
"""
EVERY_RULE = {
    "type": "tag",
    "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
RULES_OF_LOOKS = {
    "type": "rule",
    "values": [
        "color-contrast",
        "link-in-text-block",
        "scrollable-region-focusable",
        "target-size",
    ],
}
"""What depends on colours and on the size of the window."""


def findings(
    page: Page, only: dict[str, Any] = EVERY_RULE, besides: tuple[str, ...] = ()
) -> list[str]:
    """Return what axe finds on the page, one line for each element: rule, element, what to mend.

    `besides` names elements that are not looked at, by CSS selectors. The script comes by the
    devtools protocol, so that no policy of the page has to allow it.
    """
    page.evaluate(_SCRIPT)
    rules: list[dict[str, Any]] = page.evaluate(_RUN, [only, list(besides)])
    return [
        f"{rule['id']}: {' '.join(node['html'].split())[:200]}"
        f" – {node['failureSummary'].splitlines()[-1].strip()}"
        for rule in rules
        for node in rule["nodes"]
    ]
