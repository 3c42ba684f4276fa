"""The links to records in the page menu and in the admin's sidebar."""

from tailrace.web.pages.menu import AdminLink, AdminSection, PageLink

PAGE_LINKS = [
    PageLink("Records", "records:search"),
    PageLink("Depositions", "records:depositions"),
]
ADMIN_MENU = AdminSection(
    "Records",
    [
        AdminLink("Depositions", "inbox", "tailrace_records.deposition"),
        AdminLink("Records", "article", "tailrace_records.record"),
        AdminLink("Sources of records", "rss_feed", "tailrace_records.source"),
    ],
)
