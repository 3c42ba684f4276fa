"""The attackers' accounts, made within the platform: `manage.py shell -c` calls `make`."""

import json
import sys
from dataclasses import asdict

from django.contrib.auth.models import Permission, User
from django.utils.crypto import get_random_string

from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.web.accounts import tokens
from tests.siege.attacker import Attacker

USERS = 10
TOKENS_OF_THE_FIRST = 100


def make(urls: list[str]) -> None:
    """Make users with tokens and an endpoint at each URL; print them as JSON."""
    attackers = [_make(number, urls) for number in range(USERS)]
    sys.stdout.write("\n" + json.dumps([asdict(each) for each in attackers]) + "\n")


def _make(number: int, urls: list[str]) -> Attacker:
    password = get_random_string(20)
    user = User.objects.create_user(f"attacker{number}", password=password)
    wanted = {"add_event", "add_photo", "view_event"}
    user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    count = 1 if number else TOKENS_OF_THE_FIRST
    recording = {"event_types": tokens.event_type_names(), "event_source": "/siege"}
    texts = [
        tokens.make(user, f"token {each}", tokens.scopes(), **recording)[1] for each in range(count)
    ]
    own = [endpoints.create(user, url)[0].pk for url in urls]
    return Attacker(user.username, password, texts, own)
