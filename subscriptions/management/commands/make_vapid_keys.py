from typing import Any

from django.core.management.base import BaseCommand

from subscriptions.vapid import new_keys


class Command(BaseCommand):
    """Makes a key pair for push messages and prints it; nothing is kept."""

    help = "Make the key pair by which push services know Tailrace, and print it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        private, public = new_keys()
        self.stdout.write(f"VAPID_PRIVATE_KEY={private}")
        self.stdout.write(f"# the public half, which pages hand to browsers: {public}")
        self.stdout.write("# and whom push services write to: VAPID_SUBJECT=mailto:you@example.org")
