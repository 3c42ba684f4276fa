import json
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import transaction
from django.test import Client, RequestFactory

from tailrace.config.admin import sidebar
from tailrace.config.commands.environment import table
from tailrace.config.devserver import processes
from tailrace.config.settings import env
from tailrace.events.publish import NewEvent, publish
from tailrace.events.types import find_type
from tailrace.jobs.engine import registry
from tailrace.jobs.models import Job
from tailrace.jobs.platform.pages.panel import all_panels
from tailrace.jobs.runtime.invariant import all_invariants
from tailrace.subscriptions.types.channel import all_channels
from tailrace.web.accounts import tokens
from tailrace.web.accounts.personal_data import all_personal_data
from tailrace.web.api.site import api
from tailrace.web.bodies import BodyLimits
from tailrace.web.pages.menu import all_page_links


class Command(BaseCommand):
    help = "Print which parts of the domain are live, as JSON."

    def handle(self, *args: Any, **options: Any) -> None:
        request = RequestFactory().get("/")
        call_command("check")
        parts = {
            "setting": settings.WEATHER_FROST_DEGREES,
            "row of docs/reference/settings.md": "`WEATHER_FROST_DEGREES`" in table(),
            "unknown variable": env.unknown(),
            "event type": find_type("weather.measured") is not None,
            "jobs": jobs_of_an_event(),
            "queue": "weather.warn_of_frost" in registry.all_handlers(),
            "channel": "pager" in all_channels() and "weather.pager" in registry.all_handlers(),
            "page": Client().get("/weather/", headers={"host": "localhost"}).content.decode(),
            "menu": any(link.title == "Weather" for link in all_page_links()),
            "admin menu": any(item["title"] == "Weather" for item in sidebar.sections(request)),
            "panel": any(panel.title == "Forecast" for panel in all_panels()),
            "API": "/api/forecasts" in api.get_openapi_schema()["paths"],
            "upload": BodyLimits().of(b"/api/forecasts/maps").longest,
            "scope": tokens.scopes().get("weather:read"),
            "invariant": any(rule.name == "weather.stations_report" for rule in all_invariants()),
            "personal data": "The colour of your umbrella."
            in [data.description() for data in all_personal_data()],
            "process": "station" in processes.commands(),
        }
        self.stdout.write(json.dumps(parts))


def jobs_of_an_event() -> list[str]:
    """Publish an event, return the handlers of its jobs, and roll everything back."""
    with transaction.atomic():
        publish(NewEvent("weather.measured", {"degrees": -3}))
        jobs = Job.objects.filter(handler__startswith="weather.")
        names = list(jobs.values_list("handler", flat=True))
        transaction.set_rollback(True)
    return names
