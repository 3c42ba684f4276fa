"""Find tasks that wait for the results of others, in their source."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from tailrace.jobs.platform.adopting.arguments import original

STARTS = {"delay", "apply_async", "send_task", "delay_on_commit"}
"""Methods that return a result that is not ready."""
RESULTS = {"AsyncResult", "GroupResult", "ResultSet"}
CANVAS = {"chain", "chord", "group"}
WAITS = {"get", "join", "join_native", "collect", "wait", "wait_for_pending"}


def waits(task: Any) -> Iterator[str]:
    """Yield a sentence on each line of the task's source that waits for a result."""
    try:
        lines, first = inspect.getsourcelines(original(task))
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # written in C, or without its file
        return
    results = _names_of_results(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            waited = node.func.value
            if node.func.attr in WAITS and _is_result(waited, results):
                yield (
                    f"line {first + node.lineno - 1} waits for a result inside the task:"
                    f" `{ast.unparse(node)}`; make it a chain or a chord"
                )


def _names_of_results(tree: ast.AST) -> set[str]:
    """Return the names of variables to which a result is assigned."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if _is_result(node.value, set()) or _is_list_of_results(node.value):
                names |= {each.id for each in targets if isinstance(each, ast.Name)}
    for node in ast.walk(tree):
        if not (
            isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name)
        ):
            continue
        if _is_result(node.iter, names) or _is_list_of_results(node.iter):
            names.add(node.target.id)
    return names


def _is_list_of_results(node: ast.AST) -> bool:
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _is_result(node.elt, set())
    return isinstance(node, ast.List | ast.Tuple) and any(
        _is_result(each, set()) for each in node.elts
    )


def _is_result(node: ast.AST, names: set[str]) -> bool:
    """Return whether an expression is a result, given the names of variables that are."""
    if isinstance(node, ast.Name):
        return node.id in names
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Attribute):
        return called.attr in STARTS | RESULTS
    if isinstance(called, ast.Name):
        return called.id in RESULTS
    if isinstance(called, ast.Call):  # chord(header)(body), group(…)()
        inner = called.func
        name = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
        return name in CANVAS
    return False
