from django.contrib.auth.models import Group, User
from django.db import transaction

from tailrace.domains.builds.models import Watch
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import Feed, GroupAddress

LOGINS = ("alice", "bob", "carol", "dave", "erin")
TEAM = "factory-team"
PROJECT = "home:alice"


@transaction.atomic
def seed_builds(password: str | None = None) -> str:
    """Create the users that the sample backend's metadata names, so that mails have recipients, and
    a feed. Return the feed's address if it is new.

    Without a password the users cannot sign in. Existing users do not change.
    """
    users = {login: _user(login, password) for login in LOGINS}
    team, _ = Group.objects.get_or_create(name=TEAM)
    GroupAddress.objects.get_or_create(group=team, defaults={"email": f"{TEAM}@example.org"})
    users["carol"].groups.add(team)
    Watch.objects.get_or_create(user=users["carol"], project=PROJECT)
    alice = users["alice"]
    if Feed.objects.filter(user=alice).exists():
        return ""
    _, address = make_feed(alice)
    return f"Feed of alice: {address} (shown only once)"


def _user(login: str, password: str | None) -> User:
    user = User.objects.filter(username=login).first()
    return user or User.objects.create_user(login, f"{login}@example.org", password)
