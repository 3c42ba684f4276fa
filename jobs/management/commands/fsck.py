import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, connection

from events.suggest import did_you_mean
from jobs.fsck.check import Report, check, everything, pause_for
from jobs.fsck.kind import MOST, Kind, Scope

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Command(BaseCommand):
    help = (
        "Check that what should be true of stored state is. "
        "Ends with 0 if all is well, 1 if something is not (with --fix: still is not), 2 on wrong "
        "arguments."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--fix", action="store_true", help="repair what has a safe repair")
        parser.add_argument("--kind", action="append", metavar="NAME", help="this kind only")
        parser.add_argument("--list", action="store_true", help="name the kinds, and check nothing")
        parser.add_argument(
            "--since", default="1d", metavar="DURATION", help="events that are younger (2h, 7d)"
        )
        parser.add_argument("--show", type=int, default=10, metavar="N", help="ids per kind")
        parser.add_argument(
            "--pause", type=float, default=2.0, metavar="SECONDS", help="before the second look"
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        kinds = _chosen(options["kind"])
        if options["list"]:
            lines = [f"{kind.name}: {kind.description()}" for kind in kinds]
            self.stdout.write("\n".join(lines))
            return
        if options["show"] < 0 or options["pause"] < 0:
            raise CommandError("--show and --pause are not below 0", returncode=2)
        _connect()
        scope, pause = Scope(_seconds(options["since"])), pause_for(options["pause"])
        reports = check(kinds, scope, fix=options["fix"], pause=pause)
        show = _as_json if options["json"] else _as_text
        self.stdout.write(show(reports, options["show"], options["fix"]))
        if not all(report.clean for report in reports):
            sys.exit(1)


def _connect() -> None:
    try:
        connection.ensure_connection()
    except OperationalError as error:
        raise CommandError(f"the database cannot be reached: {error}") from None


def _chosen(names: list[str] | None) -> list[Kind]:
    kinds = {kind.name: kind for kind in everything()}
    for name in names or ():
        if name not in kinds:
            hint = did_you_mean(name, kinds)
            raise CommandError(
                f"fsck has no kind {name!r}{hint}; `fsck --list` names all", returncode=2
            )
    return [kind for name, kind in kinds.items() if not names or name in names]


def _seconds(text: str) -> float:
    if text[-1:] in UNITS and text[:-1].isdecimal() and int(text[:-1]):
        return float(int(text[:-1]) * UNITS[text[-1]])
    raise CommandError(f"--since {text!r} is no duration, such as 2h or 7d", returncode=2)


def _as_text(reports: list[Report], show: int, fix: bool) -> str:
    lines = []
    for report in reports:
        if report.found:
            lines += _lines(report, show, fix)
        if report.error:
            lines.append(f"{report.kind.name}: not checked to the end: {report.error}")
    unclean = sum(not report.clean for report in reports)
    lines.append(
        f"{len(reports)} kinds checked: " + (f"{unclean} not clean" if unclean else "clean")
    )
    return "\n".join(lines)


def _lines(report: Report, show: int, fix: bool) -> list[str]:
    kind, count = report.kind, len(report.found)
    number = f"{count}+" if count >= MOST else str(count)
    lines = [f"{kind.name}: {number} found. Should be: {kind.description()}"]
    lines.append(f"  {_ids(report.found, show)}")
    if fix and kind.repairs:
        lines.append(f"  repaired {count - len(report.left)}: {kind.advice}")
        if report.left:
            lines.append(f"  left {len(report.left)}: {_ids(report.left, show)}")
    else:
        lines.append(f"  {'--fix' if kind.repairs else 'not repaired here'}: {kind.advice}")
    return lines


def _ids(keys: list[Any], show: int) -> str:
    shown = ", ".join(_id(key) for key in keys[:show])
    return f"{shown} and {len(keys) - show} more" if len(keys) > show else shown


def _id(key: Any) -> str:
    """`42`, a queue's name, or the event, handler and routing key of a job that is missing."""
    return " ".join(str(part) for part in key if part != "") if isinstance(key, tuple) else str(key)


def _as_json(reports: list[Report], show: int, fix: bool) -> str:
    kinds = [
        {
            "kind": report.kind.name,
            "should_be": report.kind.description(),
            "found": len(report.found),
            "more": len(report.found) >= MOST,
            "ids": report.found[:show],
            "repaired": len(report.found) - len(report.left),
            "left": len(report.left),
            "repairable": report.kind.repairs,
            "advice": report.kind.advice,
            "error": report.error,
        }
        for report in reports
    ]
    clean = all(report.clean for report in reports)
    return json.dumps({"clean": clean, "kinds": kinds}, indent=2, ensure_ascii=False)
