"""What a subscriber does on that site: two users, one of whom chooses the app's channel."""

import json
import sys
from pathlib import Path

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import setup_test_environment  # noqa: E402

from tailrace.jobs.engine.drain import drain  # noqa: E402
from tailrace.subscriptions.models import EventSubscription  # noqa: E402
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event  # noqa: E402

OPTION = {"type": "stage.premiere", "role": FIRST, "channel": "pigeon"}

setup_test_environment()
call_command("migrate", verbosity=0)
ann, bob = person("ann"), person("bob")
assign_role(FIRST, ann, bob)
client = Client()
client.force_login(ann)
page = client.get("/me/subscriptions/choice", OPTION)
saved = client.post("/me/subscriptions/choice", {**OPTION, "choice": "on"})
publish_event(payload={"title": "Faust"})
drain("subscriptions.notify")
drain("pigeon.pigeon")
json.dump(
    {
        "page": page.status_code,
        "saved": saved.status_code,
        "default": EventSubscription.objects.get(
            event_type="stage.premiere", role=FIRST, channel="pigeon", user=None
        ).state,
        "loft": Path(settings.PIGEON_LOFT).read_text(),
        "checks": call_command("check") or "passed",
    },
    sys.stdout,
)
