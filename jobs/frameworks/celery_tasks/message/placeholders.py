"""Stand for results that are not known yet in the arguments of jobs that wait for other jobs."""

from typing import Any

from kombu.utils.json import register_type


class ParentResult:
    """The result of the task with this id, which the job waits for."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id

    def __repr__(self) -> str:
        return f"<result of task {self.task_id}>"


class ChordResults:
    """The results of all tasks of a chord's header, as a list. `shape`: the ids of the tasks, in
    lists within the list for the groups in the header; None: there are none."""

    def __init__(self, shape: list[Any] | None = None) -> None:
        self.shape = shape

    def __repr__(self) -> str:
        return "<results of the chord>"

    def filled_in(self, results: dict[str, Any]) -> list[Any]:
        """Return the results in this shape. Tasks that were added to the chord come last."""
        if self.shape is None:
            return list(results.values())
        left = dict(results)

        def shaped(ids: list[Any]) -> list[Any]:
            return [shaped(id) if isinstance(id, list) else left.pop(id) for id in ids]

        return [*shaped(self.shape), *left.values()]


register_type(ParentResult, "tailrace.result", lambda result: result.task_id, ParentResult)
register_type(ChordResults, "tailrace.results", lambda results: results.shape, ChordResults)


def is_placeholder(value: Any) -> bool:
    return isinstance(value, ParentResult | ChordResults)


def filled_in(args: list[Any], results: dict[str, Any]) -> list[Any]:
    """Return the arguments with the results. `results`: by task ids, in the order of the header.
    Raises KeyError if a result is missing."""
    return [
        results[each.task_id]
        if isinstance(each, ParentResult)
        else each.filled_in(results)
        if isinstance(each, ChordResults)
        else each
        for each in args
    ]
