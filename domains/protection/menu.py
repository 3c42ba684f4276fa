"""The links to protection in the page menu, and the tabs of its own pages."""

from dataclasses import dataclass

from web.menu import AdminLink, AdminSection, PageLink

PAGE_LINKS = [PageLink("Protection", "protection:overview")]


@dataclass(frozen=True, slots=True)
class Tab:
    """A link above every page of protection."""

    title: str
    view: str
    """The name of its URL in this domain; the tab is current on all addresses below it."""


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
"""A new page is one more line here."""

ADMIN_MENU = AdminSection(
    "Protection",
    [
        AdminLink("Alerts", "notifications", "protection.alert"),
        AdminLink("Watchlist", "visibility", "protection.watchlistitem"),
        AdminLink("Exposures", "gpp_bad", "protection.exposure"),
        AdminLink("Recordings", "mic", "protection.recording"),
        AdminLink("Reports", "picture_as_pdf", "protection.report"),
        AdminLink("Properties", "home", "protection.watchedproperty"),
        AdminLink("Property changes", "home_work", "protection.propertychange"),
        AdminLink("Breaches", "lock_open", "protection.breach"),
        AdminLink("Removals", "person_remove", "protection.removalrequest"),
    ],
)
