from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from tailrace.domains.records.search.indexing import upkeep
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.environment.suggest import did_you_mean


class Command(BaseCommand):
    help = "Index all records again in one index, or replay the failed jobs of the index."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("index", help="name of the index, such as keyword or vector")
        parser.add_argument("--by", required=True, help="user name of the operator, for the log")
        parser.add_argument(
            "--failed", action="store_true", help="only replay the failed jobs of this index"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["index"]
        if name not in backends():
            known = f"; the indexes are {', '.join(backends())}"
            raise CommandError(f"no index {name!r}{did_you_mean(name, backends())}{known}")
        user = User.objects.filter(username=options["by"]).first()
        if user is None:
            raise CommandError(f"--by: no user {options['by']!r}; name an account of an operator")
        change = upkeep.replay_failed if options["failed"] else upkeep.reindex_all
        self.stdout.write(change(name, user))
