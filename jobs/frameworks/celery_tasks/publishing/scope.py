"""Collect the jobs of a canvas while Celery's own code applies it, with the jobs that wait for
them.

Celery's worker applies the next task of a chain when a task has returned. Here it is applied at
once, with a placeholder for the result, and becomes a job that waits for the first one. The same is
done with the callbacks of a task and with the body of a chord.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from celery import group
from celery._state import _task_stack
from celery.app.task import Context
from celery.canvas import maybe_signature
from celery.exceptions import ImproperlyConfigured
from celery.result import GroupResult
from celery.utils.functional import maybe_list

from tailrace.jobs.frameworks.celery_tasks.durable import is_durable, without_empty
from tailrace.jobs.frameworks.celery_tasks.message.message import Collected, Message
from tailrace.jobs.frameworks.celery_tasks.message.opaque import serializer_of
from tailrace.jobs.frameworks.celery_tasks.message.placeholders import ChordResults, ParentResult
from tailrace.jobs.frameworks.celery_tasks.publishing import insert

CHORD_ERROR = "tailrace.chord_error"
"""The name of the task that calls the error callbacks of a chord."""


@dataclass(slots=True, eq=False)
class Chord:
    body: Any
    shape: list[Any]
    """The ids of the tasks of the header, in lists for the groups in it."""
    parents: Sequence[Collected]
    """The jobs after which it begins."""
    parts: list[Collected] = field(default_factory=list)


class Scope:
    """The jobs of one canvas, from its application to their insertion."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.jobs: list[Collected] = []
        self._parents: Sequence[Collected] = ()
        self._after_failure_of: Sequence[Collected] = ()
        self._todo = deque[Callable[[], None]]()
        self._chords: dict[str, Chord] = {}
        self.expects_chord = False
        """Whether the next chord that Celery adds has tasks that run as jobs."""

    def add(self, message: Message) -> None:
        """Add the job of this call. What follows it is applied later, and not within this call: so
        long chains need no deep recursion."""
        job = Collected(message, self._parents, self._after_failure_of)
        self.jobs.append(job)
        embed = message.embed
        callbacks = maybe_list(embed.get("callbacks")) or []
        if callbacks and all(is_durable(each, self.app) for each in callbacks):
            embed["callbacks"] = None
            self._todo.append(partial(self._call_back, job, callbacks))
        chain = embed.get("chain")
        if chain and is_durable(chain[-1], self.app):
            embed["chain"] = None
            self._todo.append(partial(self._continue, job, chain))
        if embed.get("chord"):
            if (chord := self._chords.get(message.headers.get("group", ""))) is not None:
                chord.parts.append(job)
            embed["chord"] = _without_arguments(embed["chord"])

    def add_chord(self, group_id: str, results: Any, body: Any) -> bool:
        """Add a chord, if its tasks run as jobs; return whether they do. The tasks of its header,
        with these results, are added after it."""
        if self.expects_chord:
            self.expects_chord = False
            self._chords[group_id] = Chord(body, _shape(results), self._parents)
            return True
        return False

    def complete(self) -> None:
        """Apply all that follows the collected jobs."""
        while self._todo or self._chords:
            while self._todo:
                self._todo.popleft()()
            # The header of a chord has the chords that were added after it.
            if self._chords:
                self._apply_body(self._chords.popitem()[1])

    # As Celery's worker does it when a task has returned (celery.app.trace).

    def _call_back(self, job: Collected, callbacks: list[Any]) -> None:
        signatures = [maybe_signature(each, app=self.app) for each in callbacks]
        if len(signatures) > 1:
            groups = [each for each in signatures if isinstance(each, group)]
            others = [each for each in signatures if not isinstance(each, group)]
            signatures = [*groups, *([group(others, app=self.app)] if others else [])]
        for signature in signatures:
            self._apply(signature, job)

    def _continue(self, job: Collected, chain: list[Any]) -> None:
        self._apply(maybe_signature(chain[-1], app=self.app), job, chain=chain[:-1])

    def _apply(self, signature: Any, job: Collected, **options: Any) -> None:
        job.returns = True
        message = job.message
        with self._at_the_end_of([job]):
            signature.apply_async(
                (ParentResult(message.id),),
                parent_id=message.id,
                root_id=message.headers.get("root_id") or message.id,
                priority=message.priority if self.app.conf.task_inherit_parent_priority else None,
                **options,
            )

    def _apply_body(self, chord: Chord) -> None:
        if not chord.parts:  # it has no tasks of this class, or none at all
            return
        for part in chord.parts:
            part.returns = True
        positions = {id: position for position, id in enumerate(_flat(chord.shape))}
        chord.parts.sort(key=lambda part: positions.get(part.message.id, len(positions)))
        is_flat = not any(isinstance(each, list) for each in chord.shape)
        body, before = maybe_signature(chord.body, app=self.app), len(self.jobs)
        with self._at_the_end_of(chord.parts):
            body.apply_async((ChordResults(None if is_flat else chord.shape),))
        for job in self.jobs[before:]:
            # The tasks of a group have the error of the part itself, as in Celery.
            job.is_body = job.parents is chord.parts and not isinstance(body, group)
        if _has_errbacks(body):
            # If the chord itself never began, Celery calls no error callbacks of its body.
            self._parents, self._after_failure_of = chord.parents, chord.parts
            try:
                last = chord.parts[-1].message
                self.app.tasks[CHORD_ERROR].apply_async(
                    (dict(body),), add_to_parent=False, queue=last.queue or None,
                    serializer=serializer_of(last.opaque),
                )  # fmt: skip
            finally:
                self._parents, self._after_failure_of = (), ()

    @contextmanager
    def _at_the_end_of(self, parents: Sequence[Collected]) -> Iterator[None]:
        """Within the block, calls are children of the last parent, and their jobs wait for all."""
        last = parents[-1]
        task, message = last.message.task, last.message
        context = Context(
            id=message.id, root_id=message.headers.get("root_id"), called_directly=False,
            delivery_info={"priority": message.priority}, args=(), kwargs={},
        )  # fmt: skip
        before, self._parents = self._parents, parents
        _task_stack.push(task)
        task.request_stack.push(context)
        try:
            yield
        finally:
            task.request_stack.pop()
            _task_stack.pop()
            self._parents = before
        last.children += [child.as_tuple() for child in context.children]

    def name(self) -> str:
        """Return a name of the flow, from the names of its first tasks."""
        names = Counter(job.message.task.name.rpartition(".")[2] for job in self.jobs)
        shown = [name if number == 1 else f"{number}× {name}" for name, number in names.items()]
        return ", ".join(shown[:5] + ["…"] * (len(shown) > 5))[:200]


_current: ContextVar[Scope | None] = ContextVar("scope", default=None)


@contextmanager
def collecting(app: Any, scope: Scope | None = None) -> Iterator[Scope]:
    """Collect the calls within the block. At the end of the outermost block, their jobs are
    inserted in the caller's transaction. With `scope`, they are collected there, and the caller
    inserts them."""
    if scope is None and (outer := _current.get()) is not None:
        yield outer
        return
    inserts = scope is None
    scope = scope or Scope(app)
    token = _current.set(scope)
    try:
        yield scope
        scope.complete()
    finally:
        _current.reset(token)
    if inserts and scope.jobs:
        insert.insert(scope.jobs, scope.name)


def current() -> Scope | None:
    return _current.get()


def check_header(tasks: Any, body: Any, app: Any) -> bool:
    """Return whether all tasks of a chord run as jobs; False if none of its header does. Raises
    ImproperlyConfigured if only some do."""
    tasks = without_empty(tasks, app)
    durable = [is_durable(each, app) for each in tasks]
    if not any(durable):
        return False
    if all(durable) and is_durable(body, app):
        return True
    others = [each for each, is_one in zip(tasks, durable, strict=True) if not is_one] or [body]
    raise ImproperlyConfigured(
        f"a chord has tasks that run as jobs, and {others[0].get('task')!r}, which does not:"
        " give all of them the class tailrace.celery.Task, or none"
    )


def _shape(results: Any) -> list[Any]:
    """Return the ids of the results of a group, in which groups may be nested."""
    return [_shape(each.results) if isinstance(each, GroupResult) else each.id for each in results]


def _flat(shape: list[Any]) -> Iterator[str]:
    for each in shape:
        if isinstance(each, list):
            yield from _flat(each)
        else:
            yield each


def _has_errbacks(body: Any) -> bool:
    tasks = [body, *body.tasks] if isinstance(body, group) else [body]
    return any(maybe_list(each.options.get("link_error")) for each in tasks)


def _without_arguments(body: Any) -> dict[str, Any]:
    """Return the body of a chord as its parts have it: each of a thousand parts has a copy."""
    options = {"task_id": body["options"].get("task_id")}
    return {
        "task": body["task"], "args": [], "kwargs": {}, "options": options, "subtask_type": None,
        "immutable": False,
    }  # fmt: skip
