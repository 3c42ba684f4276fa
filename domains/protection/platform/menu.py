"""The links to protection in the page menu, and the tabs above the pages of protection."""

from dataclasses import dataclass

from tailrace.web.pages.menu import AdminLink, AdminSection, PageLink

PAGE_LINKS = [PageLink("Protection", "protection:overview")]


@dataclass(frozen=True, slots=True)
class Tab:
    """A link above every page of protection."""

    title: str
    view: str
    """The name of the tab's URL in this domain. The tab is current on this page and the pages below
    it."""


TABS = [
    Tab("Overview", "overview"),
    Tab("Watchlist", "watchlist"),
    Tab("Exposures", "exposures"),
    Tab("Passwords", "passwords"),
    Tab("Properties", "properties"),
    Tab("Voices", "voices"),
    Tab("Reports", "reports"),
    Tab("Removals", "removals"),
]
"""To add a tab, add a line here."""

ADMIN_MENU = AdminSection(
    "Protection",
    [
        AdminLink("Alerts", "notifications", "tailrace_protection.alert"),
        AdminLink("Watchlist", "visibility", "tailrace_protection.watchlistitem"),
        AdminLink("Exposures", "gpp_bad", "tailrace_protection.exposure"),
        AdminLink("Recordings", "mic", "tailrace_protection.recording"),
        AdminLink("Reports", "picture_as_pdf", "tailrace_protection.report"),
        AdminLink("Properties", "home", "tailrace_protection.watchedproperty"),
        AdminLink("Property changes", "home_work", "tailrace_protection.propertychange"),
        AdminLink("Breaches", "lock_open", "tailrace_protection.breach"),
        AdminLink("Removals", "person_remove", "tailrace_protection.removalrequest"),
    ],
)
