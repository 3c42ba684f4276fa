from typing import Any

from django.core.management.base import BaseCommand

from tailrace.subscriptions.channels.push.vapid import new_keys


class Command(BaseCommand):
    help = "Create a VAPID key pair for push messages and print it. It is not stored."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        private, public = new_keys()
        self.stdout.write(f"VAPID_PRIVATE_KEY={private}")
        self.stdout.write(f"# the public key, which pages give to browsers: {public}")
        self.stdout.write("# the contact for push services: VAPID_SUBJECT=mailto:you@example.org")
