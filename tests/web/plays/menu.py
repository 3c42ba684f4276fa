from tailrace.web.menu import PageLink

PAGE_LINKS = [PageLink("Backstage", "admin:index")]
