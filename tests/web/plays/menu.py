from tailrace.web.pages.menu import PageLink

PAGE_LINKS = [PageLink("Backstage", "admin:index")]
