"""A process whose clock is wrong by days: windows and expiry go by the clock of the database."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from tailrace.subscriptions.models import ApiToken, Digest
from tests.jobs.test_wrong_clock import elsewhere
from tests.subscriptions.sample_domain import person

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("faketime") is None, reason="needs faketime"),
]

MAKE_TOKEN = """
from django.contrib.auth.models import User
from tailrace.web.accounts import tokens
print(tokens.make(User.objects.get(), "ci", ["feeds"], days=1)[0].pk)
"""
PUT_INTO_DIGEST = """
from django.contrib.auth.models import User
from django.db import transaction
from tailrace.subscriptions.channels.mail import digests
from tailrace.subscriptions.types.recipient import Recipient
with transaction.atomic():
    digests.collect([Recipient(1, "mail", User.objects.get().pk, None, "first", "hourly")])
print(1)
"""


def test_a_token_lives_as_long_as_it_was_made_for(process_env) -> None:
    person("ann")
    elsewhere(process_env, "+3d", MAKE_TOKEN)
    left = ApiToken.objects.get().expires_at - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(days=1)


def test_a_mail_is_collected_for_the_present_window(process_env) -> None:
    person("ann")
    elsewhere(process_env, "+3d", PUT_INTO_DIGEST)
    left = Digest.objects.get().window_end - datetime.now(UTC)
    assert timedelta(minutes=-10) < left <= timedelta(hours=1)
