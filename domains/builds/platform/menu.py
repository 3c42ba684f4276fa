"""The links of builds in the admin's sidebar."""

from tailrace.web.pages.menu import AdminLink, AdminSection

ADMIN_MENU = AdminSection(
    "Builds",
    [
        AdminLink("Project log", "history", "tailrace_builds.projectlogentry"),
        AdminLink("Projects", "folder", "tailrace_builds.project"),
        AdminLink("Packages", "deployed_code", "tailrace_builds.package"),
        AdminLink("Binaries", "inventory_2", "tailrace_builds.binary"),
    ],
)
