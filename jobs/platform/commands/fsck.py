import json
import sys
import time
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, connections

from tailrace.db.engine_database import home
from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.engine.maintenance.sweeping.check_all import Report, check_all
from tailrace.jobs.platform.inspection.search.terms import seconds
from tailrace.jobs.platform.invariants.events import EventHasJobs
from tailrace.jobs.runtime.invariant import Invariant, all_invariants


class Command(BaseCommand):
    help = (
        "Check that the stored state is consistent. "
        "Exit status: 0 if it is, 1 if there are violations (with --fix: violations that were not "
        "repaired), 2 if the arguments are wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--fix", action="store_true", help="repair violations that have a safe repair")
        add("--kind", action="append", metavar="NAME", help="run only this check")
        add("--list", action="store_true", help="list the checks without running them")
        text = "check events of the last period (2h, 7d; default: 1d)"
        add("--since", default="1d", metavar="DURATION", help=text)
        add("--show", type=int, default=10, metavar="N", help="ids shown per check")
        text = "pause before the second check"
        add("--pause", type=float, default=2.0, metavar="SECONDS", help=text)
        add("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        invariants = _chosen(options["kind"])
        if options["list"]:
            lines = [f"{rule.name}: {rule.description()}" for rule in invariants]
            self.stdout.write("\n".join(lines))
            return
        if options["show"] < 0 or options["pause"] < 0:
            raise CommandError("--show and --pause must not be negative", returncode=2)
        for rule in invariants:
            if isinstance(rule, EventHasJobs):
                rule.since = _since(options["since"])
        try:
            connections[home()].ensure_connection()
        except OperationalError as error:
            raise CommandError(f"the database cannot be reached: {error}") from None
        pause = partial(time.sleep, options["pause"])
        reports = check_all(invariants, fix=options["fix"], pause=pause)
        format_reports = _as_json if options["json"] else _as_text
        self.stdout.write(format_reports(reports, options["show"], options["fix"]))
        if not all(report.clean for report in reports):
            sys.exit(1)


def _chosen(names: list[str] | None) -> list[Invariant]:
    checks = {rule.name: rule for rule in all_invariants()}
    for name in names or ():
        if name not in checks:
            text = f"there is no check {name!r}{did_you_mean(name, checks)}"
            raise CommandError(f"{text}; `fsck --list` lists all checks", returncode=2)
    return [rule for name, rule in checks.items() if not names or name in names]


def _since(text: str) -> float:
    if duration := seconds(text):
        return float(duration)
    raise CommandError(f"--since {text!r} is not a duration such as 2h or 7d", returncode=2)


def _as_text(reports: list[Report], show: int, fix: bool) -> str:
    lines = []
    for report in reports:
        if report.found:
            lines += _lines(report, show, fix)
        if report.error:
            lines.append(f"{report.invariant.name}: the check stopped: {report.error}")
    wrong = sum(not report.clean for report in reports)
    lines.append(f"{len(reports)} checks: " + (f"{wrong} not clean" if wrong else "clean"))
    return "\n".join(lines)


def _lines(report: Report, show: int, fix: bool) -> list[str]:
    rule, count = report.invariant, len(report.found)
    number = f"{count}+" if report.more else str(count)
    lines = [f"{rule.name}: {number} found. Expected: {rule.description()}"]
    lines.append(f"  {_ids(report.found, show)}")
    if fix and rule.repairs:
        lines.append(f"  repaired {count - len(report.left)}: {rule.advice}")
        if report.left:
            lines.append(f"  not repaired {len(report.left)}: {_ids(report.left, show)}")
        if report.locked:
            lines.append(f"  locked by other transactions: {report.locked}; run fsck again")
    elif report.left_to_sweeper:
        lines.append(f"  the sweeper repairs this within {rule.every:g} s: {rule.advice}")
    else:
        lines.append(f"  {'with --fix' if rule.repairs else 'by hand'}: {rule.advice}")
    return lines


def _ids(keys: list[Any], show: int) -> str:
    shown = ", ".join(_id(key) for key in keys[:show])
    return f"{shown} and {len(keys) - show} more" if len(keys) > show else shown


def _id(key: Any) -> str:
    """Return the text of a violation: `42`, a queue's name, or the event, handler and routing key
    of a missing job."""
    return " ".join(str(part) for part in key if part != "") if isinstance(key, tuple) else str(key)


def _as_json(reports: list[Report], show: int, fix: bool) -> str:
    kinds = [
        {
            "kind": report.invariant.name,
            "should_be": report.invariant.description(),
            "clean": report.clean,
            "found": len(report.found),
            "more": report.more,
            "ids": report.found[:show],
            "repaired": len(report.found) - len(report.left),
            "left": len(report.left),
            "left_to_sweeper": report.left_to_sweeper,
            "locked": report.locked,
            "repairable": report.invariant.repairs,
            "advice": report.invariant.advice,
            "error": report.error,
        }
        for report in reports
    ]
    result = {"clean": all(report.clean for report in reports), "kinds": kinds}
    return json.dumps(result, indent=2, ensure_ascii=False, default=str)
