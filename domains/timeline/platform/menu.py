"""The links to timelines in the page menu and in the admin's sidebar."""

from tailrace.web.pages.menu import AdminLink, AdminSection, PageLink

PAGE_LINKS = [PageLink("Timeline", "timeline:days")]
ADMIN_MENU = AdminSection(
    "Timeline",
    [AdminLink("Imports", "upload_file", "tailrace_timeline.import")],
)
