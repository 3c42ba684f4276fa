"""The list of Tailrace's apps."""

import pkgutil
from importlib.util import find_spec

APPS = [
    "tailrace.events",
    "tailrace.jobs",
    "tailrace.web",
    "tailrace.subscriptions",
    "tailrace.domains.builds",
    "tailrace.domains.photos",
    "tailrace.domains.timeline",
    "tailrace.domains.protection",
    "tailrace.domains.records",
]
"""To add a domain, add a line here. All else is found in its folder: docs/how-to/new-domain.md."""


def template_libraries() -> dict[str, str]:
    """Return the modules of template tags in the apps' `pages/templatetags`, by their names in
    `{% load %}`. Django itself finds only modules in the `templatetags` of an app."""
    return {
        module.name: f"{app}.pages.templatetags.{module.name}"
        for app in APPS
        if (spec := find_spec(app))
        for folder in spec.submodule_search_locations or ()
        for module in pkgutil.iter_modules([f"{folder}/pages/templatetags"])
    }
