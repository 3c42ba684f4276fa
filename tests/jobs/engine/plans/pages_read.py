"""How many pages the statements of a call read, by their plans."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db import connection, transaction

from tailrace.jobs.engine.maintenance.pruning import history

BIG = {
    "tailrace_jobs_job", "tailrace_events_event", "tailrace_jobs_attempt",
    "tailrace_jobs_dependency",
}  # fmt: skip
PAGES = 4000
"""Pages of 8 KB that one statement may touch. The table of jobs alone has more than 10,000."""


def explain(work: Callable[[], Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the statements that `work` executes, each with its plan as it was executed."""
    executed: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        executed.extend((statement.strip(), params) for statement in sql.split(";"))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        point = transaction.savepoint()
        work()
        transaction.savepoint_rollback(point)
    plans = []
    for sql, params in executed:
        if sql.split(None, 1)[0] not in ("SELECT", "WITH", "UPDATE", "INSERT", "DELETE"):
            continue
        point = transaction.savepoint()
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) " + sql, params)
            answer = cursor.fetchone()[0]
        transaction.savepoint_rollback(point)
        answer = json.loads(answer) if isinstance(answer, str) else answer
        plans.append((sql, answer[0]["Plan"]))
    return plans


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def outline(sql: str, plan: dict[str, Any]) -> str:
    lines = [
        f"{node['Node Type']} {node.get('Index Name') or node.get('Relation Name', '')}"
        f" rows={node['Actual Rows']}x{node['Actual Loops']} pages={pages_of(node)}"
        for node in nodes(plan)
    ]
    return "\n".join([sql, *lines])


def pages_of(node: dict[str, Any]) -> int:
    return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])


def table_of(name: str) -> str:
    """Return the table that a relation is, or is a partition of."""
    return (
        "tailrace_jobs_job"
        if name == "tailrace_jobs_live" or name.startswith(history.PREFIX)
        else name
    )


def frugal(work: Callable[[], Any], pages: int = PAGES, big: set[str] = BIG) -> int:
    """Assert that no statement of `work` walks over a big table; return how many there are."""
    plans = explain(work)
    assert plans, "no statement was executed"
    for sql, plan in plans:
        walked = [
            node["Relation Name"]
            for node in nodes(plan)
            if node["Node Type"] == "Seq Scan"
            and table_of(node["Relation Name"]) in big
            # A day of one page is not worth an index.
            and pages_of(node) > node["Actual Loops"]
        ]
        assert not walked, f"walks over {walked}: {outline(sql, plan)}"
        assert pages_of(plan) <= pages, outline(sql, plan)
    return len(plans)


# These come first: they write nothing, and are measured where no test has left dead rows.
