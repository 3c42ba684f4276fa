"""The links of builds in the admin's sidebar."""

from web.menu import AdminLink, AdminSection

ADMIN_MENU = AdminSection(
    "Builds",
    [
        AdminLink("Project log", "history", "builds.projectlogentry"),
        AdminLink("Projects", "folder", "builds.project"),
        AdminLink("Packages", "deployed_code", "builds.package"),
        AdminLink("Binaries", "inventory_2", "builds.binary"),
    ],
)
