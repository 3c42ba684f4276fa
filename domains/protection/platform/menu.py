"""The links to protection in the page menu, and the tabs above the pages of protection."""

from tailrace.web.pages.menu import AdminLink, AdminSection, PageLink

PAGE_LINKS = [PageLink("Protection", "protection:overview")]


TABS = (
    "overview", "watchlist", "exposures", "passwords", "properties", "voices", "reports",
    "removals",
)  # fmt: skip
"""The names of the URLs of the tabs above every page of protection. A tab is current on its page
and the pages below it."""

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
