from tailrace.web.pages.menu import AdminLink, AdminSection, PageLink

PAGE_LINKS = [PageLink("Weather", "weather:forecast")]
ADMIN_MENU = AdminSection("Weather", [AdminLink("Forecast", "sunny", view="weather:forecast")])
