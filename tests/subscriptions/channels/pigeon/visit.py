"""What a subscriber does on that site: two users, one of whom chooses the app's channel."""

import json
import sys
from pathlib import Path

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment

from tailrace.jobs.engine.drain import drain
from tailrace.subscriptions.models import EventSubscription
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event

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
