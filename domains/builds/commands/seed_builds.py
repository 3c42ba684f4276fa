"""`tailrace seed_builds`: create the users of the sample backend's projects."""

from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand
from django.db import transaction

from tailrace.domains.builds.models import Watch
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import Feed, GroupAddress

LOGINS = ("alice", "bob", "carol", "dave", "erin")
TEAM = "factory-team"
WATCHED_PROJECT = "home:alice"


class Command(BaseCommand):
    """Creates the users that the sample backend's metadata names, so that mails have recipients.

    The users cannot log in. Running the command again does not change existing users.
    """

    help = "Create the users, the group and a feed for the sample backend."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        users = {login: _user(login) for login in LOGINS}
        team, _ = Group.objects.get_or_create(name=TEAM)
        GroupAddress.objects.get_or_create(group=team, defaults={"email": f"{TEAM}@example.org"})
        users["carol"].groups.add(team)
        Watch.objects.get_or_create(user=users["carol"], project=WATCHED_PROJECT)
        alice = users["alice"]
        if not Feed.objects.filter(user=alice).exists():
            _, address = make_feed(alice)
            self.stdout.write(f"Feed of alice: {address} (shown only once)")


def _user(login: str) -> User:
    user = User.objects.filter(username=login).first()
    return user or User.objects.create_user(login, f"{login}@example.org")
