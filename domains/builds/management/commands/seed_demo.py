"""manage.py seed_demo: people for the sample backend's projects."""

from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand
from django.db import transaction

from domains.builds.models import Watch
from subscriptions.feeds import make_feed
from subscriptions.models import Feed, GroupAddress

PEOPLE = ("alice", "bob", "carol", "dave", "erin")
TEAM = "factory-team"
WATCHED = "home:alice"


class Command(BaseCommand):
    """Makes the people whom the sample backend's metadata names, so that mails have readers.

    Repeatable: what is there is left as it is. Nobody of them can log in.
    """

    help = "Make the users, the group and a feed that go with the sample backend."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        people = {login: _person(login) for login in PEOPLE}
        team, _ = Group.objects.get_or_create(name=TEAM)
        GroupAddress.objects.get_or_create(group=team, defaults={"email": f"{TEAM}@example.org"})
        people["carol"].groups.add(team)
        Watch.objects.get_or_create(user=people["carol"], project=WATCHED)
        alice = people["alice"]
        if not Feed.objects.filter(user=alice).exists():
            _, address = make_feed(alice)
            self.stdout.write(f"Feed of alice: {address} (shown only now)")


def _person(login: str) -> User:
    found = User.objects.filter(username=login).first()
    return found or User.objects.create_user(login, f"{login}@example.org")
