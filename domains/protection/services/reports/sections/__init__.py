"""The sections of a report, one per file. To add one, add a module with a subclass of `Section`."""

import pkgutil
from importlib import import_module

from tailrace.domains.protection.services.reports.section import Section
from tailrace.environment.discovery import subclasses


def all_sections() -> list[Section]:
    """Return the sections in the order of the report."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return sorted((cls() for cls in subclasses(Section)), key=lambda section: section.order)
