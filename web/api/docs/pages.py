"""The views of the documentation: a list of all operations, and a page for each group."""

from functools import cache

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from tailrace.web.api.docs.reference import Reference
from tailrace.web.api.site import api
from tailrace.web.pages.menu import page_links


@cache
def reference() -> Reference:
    """Return the content of the pages. It is cached, since the document never changes."""
    return Reference(api.get_openapi_schema())


@cache
def _content(template: str, slug: str = "") -> SafeString:
    """Return the main part of a page, which is the same for everybody."""
    groups = reference().groups
    context = {"groups": groups, "group": reference().group(slug), "document": api}
    return mark_safe(render_to_string(template, context))  # noqa: S308


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    return _show(request, "API", _content("tailrace/web/api/overview.html"))


@require_safe
def group_page(request: HttpRequest, slug: str) -> HttpResponse:
    group = reference().group(slug)
    if group is None:
        raise Http404
    return _show(request, f"API: {group.title}", _content("tailrace/web/api/group.html", slug))


def _show(request: HttpRequest, title: str, content: SafeString) -> HttpResponse:
    links = page_links(request) if request.user.is_authenticated else []
    return render(
        request, "tailrace/web/api/page.html", {"title": title, "content": content, "links": links}
    )
