"""The result backend of Celery: the states and results of tasks that run as jobs are read from
their jobs. Other tasks have the backend that the project has configured."""

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

from celery import states
from celery.app.backends import by_url
from celery.backends.base import BaseBackend, DisabledBackend
from celery.exceptions import ChordError, TaskRevokedError, TimeoutError
from celery.result import result_from_tuple
from kombu.exceptions import EncodeError

from tailrace.db import connections
from tailrace.db.query import execute, query
from tailrace.jobs.frameworks.celery_tasks import control, running
from tailrace.jobs.frameworks.celery_tasks.durable import INSTALLED
from tailrace.jobs.frameworks.celery_tasks.message.encoding import NOT_JSON, from_json, to_json
from tailrace.jobs.frameworks.celery_tasks.message.opaque import value_from_json, value_to_json
from tailrace.jobs.frameworks.celery_tasks.publishing import insert
from tailrace.jobs.frameworks.celery_tasks.publishing.producer import Producer
from tailrace.jobs.frameworks.celery_tasks.publishing.scope import current
from tailrace.jobs.frameworks.celery_tasks.results import job_states
from tailrace.jobs.frameworks.celery_tasks.results.job_states import GROUP, Stored
from tailrace.jobs.frameworks.celery_tasks.task import Task

SHORTEST_PAUSE, LONGEST_PAUSE = 0.001, 0.1
"""Seconds between two looks for a result: between them a tenth of the time waited so far."""

_STORE = """
UPDATE tailrace_jobs_celerytask SET state = %(state)s, meta = %(meta)s::jsonb,
  children = coalesce(%(children)s::jsonb, children)
WHERE task_id = %(task)s AND job_id IS NOT NULL
"""
_FORGET = "DELETE FROM tailrace_jobs_celerytask WHERE task_id = %(task)s"
_SAVE_GROUP = f"""
INSERT INTO tailrace_jobs_celerytask (task_id, state, meta)
VALUES (%(task)s, '{GROUP}', %(meta)s::jsonb)
ON CONFLICT (task_id) DO UPDATE SET state = excluded.state, meta = excluded.meta
"""
_GROUP = f"""
SELECT meta::text FROM tailrace_jobs_celerytask WHERE task_id = %(task)s AND state = '{GROUP}'
"""


class Backend(BaseBackend):
    """Reads results from jobs."""

    supports_autoexpire = True
    supports_native_join = True

    def __init__(self, app: Any, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self.serializer = "json"
        self.thread_safe = True
        self._inner: Any = None

    @property
    def inner(self) -> Any:
        """The backend that the project has configured, for other tasks."""
        if self._inner is None:
            given = getattr(self.app, INSTALLED, None) or self.app.conf.result_backend
            cls, url = by_url(given, self.app.loader)
            self._inner = cls(app=self.app, url=url)
        return self._inner

    # --- What the tracer, or the task itself, stores ---

    def mark_as_done(
        self,
        task_id: str,
        result: Any,
        request: Any = None,
        store_result: bool = True,
        state: str = states.SUCCESS,
    ) -> None:
        call = running.call_of(task_id)
        if call is None:
            super().mark_as_done(task_id, result, request, store_result, state)
            return
        if store_result or call.payload.returns:
            call.result = self._encoded(self.prepare_value(result))
        call.children = to_json(self.current_task_children(request) or [])

    def mark_as_failure(
        self, task_id: str, exc: Any, traceback: Any = None, request: Any = None, **options: Any
    ) -> None:
        call = running.call_of(task_id)
        if call is not None and request is not None and request.errbacks:
            request.errbacks = call.named_once(request.errbacks)
        super().mark_as_failure(task_id, exc, traceback, request, **options)

    def store_result(
        self,
        task_id: str,
        result: Any,
        state: str,
        traceback: Any = None,
        request: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Store the state of a task. One that is revoked is cancelled, unless it runs."""
        if self._is_other(request):
            return self.inner.store_result(task_id, result, state, traceback, request, **kwargs)
        revokes = state == states.REVOKED and running.call_of(task_id) is None
        if revokes and control.cancel([task_id]):
            return result
        encoded = self.encode_result(result, state)
        is_error = state in states.EXCEPTION_STATES
        plain = to_json(encoded) if is_error else self._encoded(encoded)
        meta = json.dumps({"result": plain, "traceback": traceback})
        children = self.current_task_children(request) if state in self.READY_STATES else None
        given: dict[str, Any] = {"task": task_id, "state": state, "meta": meta}
        given["children"] = json.dumps(children) if children else None
        with connections.engine():
            stored = connections.with_reconnect(lambda: execute(_STORE, **given))
        if not stored and not self._has_no_inner():
            return self.inner.store_result(task_id, result, state, traceback, request, **kwargs)
        return result

    def _encoded(self, value: Any) -> Any:
        try:
            return value_to_json(self.app, self.app.conf.result_serializer, value)
        except NOT_JSON as error:
            raise EncodeError(f"the result is not JSON: {error}") from error

    def _is_other(self, request: Any) -> bool:
        """Whether the request is of a task that does not run as a job."""
        task = self.app._tasks.get(getattr(request, "task", None) or "")
        return task is not None and not isinstance(task, Task) and not self._has_no_inner()

    def _has_no_inner(self) -> bool:
        return isinstance(self.inner, DisabledBackend)

    def on_task_call(self, producer: Any, task_id: str) -> Any:
        if isinstance(producer, Producer):
            return {}
        return self.inner.on_task_call(producer, task_id)

    # --- Chords: the scope adds the jobs of chords whose tasks run as jobs ---

    def ensure_chords_allowed(self) -> None:
        pass

    def apply_chord(self, header_result_args: Any, body: Any, **kwargs: Any) -> None:
        scope = current()
        group_id, results = header_result_args
        if scope is None or not scope.add_chord(group_id, results, body):
            self.inner.apply_chord(header_result_args, body, **kwargs)

    def set_chord_size(self, group_id: str, chord_size: int) -> None:
        self.inner.set_chord_size(group_id, chord_size)

    def on_chord_part_return(self, request: Any, state: str, result: Any, **kwargs: Any) -> None:
        if self._is_other(request):
            self.inner.on_chord_part_return(request, state, result, **kwargs)

    def add_to_chord(self, chord_id: str, result: Any) -> None:
        call = running.current.get()
        if call is None:
            self.inner.add_to_chord(chord_id, result)
        else:
            call.chord_parts.add(result.id)

    def error_of_parents(self, job: int) -> ChordError:
        """Return the error of a chord, of which a part has failed that this job waits for."""
        for stored in job_states.of_parents(job):
            error = self._error(stored)
            if error is not None:
                return self._chord_error(stored.task_id, error)
        return ChordError("a task of the chord has failed")

    def _chord_error(self, task_id: str, cause: BaseException) -> ChordError:
        error = ChordError(f"Dependency {task_id} raised {cause!r}")
        error.__cause__ = cause
        return error

    # --- Reading ---

    def _get_task_meta_for(self, task_id: str) -> dict[str, Any]:
        return self._metas([str(task_id)])[str(task_id)]

    def _metas(self, task_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        ids = list(task_ids)
        stored = job_states.of_tasks(ids)
        return {id: self._meta(stored[id]) if id in stored else self._other(id) for id in ids}

    def _other(self, task_id: str) -> dict[str, Any]:
        if self._has_no_inner():
            return {"status": states.PENDING, "result": None, "traceback": None, "children": None}
        meta: dict[str, Any] = self.inner.get_task_meta(task_id)
        return meta

    def _meta(self, stored: Stored) -> dict[str, Any]:
        if self.expires and stored.age is not None and stored.age > self.expires:
            return {"status": states.PENDING, "result": None, "traceback": None, "children": None}
        state, result = stored.celery_state, None
        if state == states.SUCCESS:
            result = None if stored.is_ignored else value_from_json(self.app, stored.result)
        elif state in states.EXCEPTION_STATES:
            result = self._error(stored)
        elif stored.meta:
            result = value_from_json(self.app, stored.meta["result"])
        request = stored.payload
        headers = request.get("headers", {})
        return {
            "task_id": stored.task_id,
            "status": state,
            "result": result,
            "traceback": (stored.meta or {}).get("traceback") or stored.traceback or None,
            "children": [result_from_tuple(child, self.app) for child in stored.children or []],
            "date_done": stored.finished_at and stored.finished_at.isoformat(),
            "parent_id": headers.get("parent_id"),
            "group_id": headers.get("group"),
            "name": stored.handler.partition("@")[0],
            "args": from_json(request.get("args", [])),
            "kwargs": from_json(request.get("kwargs", {})),
            "worker": stored.worker or None,
            "retries": headers.get("retries", 0),
            "queue": None,
        }

    def _error(self, stored: Stored) -> BaseException | None:
        """Return the exception of a task that has failed, was cancelled or is to be tried again."""
        state, meta = stored.celery_state, stored.meta
        if state not in states.EXCEPTION_STATES:
            return None
        if meta and stored.state in states.EXCEPTION_STATES:
            return self._exception(meta["result"])
        if state == states.REVOKED:
            return TaskRevokedError(stored.error or "revoked")
        if (cause := job_states.cause(stored)) is not None:
            error = self._error(cause) or Exception(stored.error)
            return self._chord_error(cause.task_id, error) if stored.is_chord_body else error
        module, _, name = stored.error_class.rpartition(".")
        return self._exception(
            {"exc_type": name or "Exception", "exc_module": module or "builtins",
             "exc_message": [stored.error]}
        )  # fmt: skip

    def _exception(self, encoded: Any) -> BaseException:
        error: BaseException = self.exception_to_python(from_json(encoded))
        return error

    def wait_for(
        self,
        task_id: str,
        timeout: float | None = None,
        interval: float = 0.5,
        no_ack: bool = True,
        on_interval: Any = None,
    ) -> dict[str, Any]:
        [(_id, meta)] = self.get_many([task_id], timeout=timeout, on_interval=on_interval)
        return meta

    def get_many(
        self,
        task_ids: Iterable[str],
        timeout: float | None = None,
        interval: float | None = None,
        no_ack: bool = True,
        on_message: Any = None,
        on_interval: Any = None,
        max_iterations: int | None = None,
        READY_STATES: Any = states.READY_STATES,
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the metas of tasks when they have ended. Raises TimeoutError."""
        self._ensure_not_eager()
        waiting, began, iterations = dict.fromkeys(task_ids), time.monotonic(), 0
        while True:
            ended = waiting.keys() - job_states.unfinished(waiting)
            for id, meta in self._metas([id for id in waiting if id in ended]).items():
                if meta["status"] in READY_STATES:
                    if on_interval and meta["status"] in states.PROPAGATE_STATES:
                        on_interval()  # raises the error of a parent, if it has failed
                    del waiting[id]
                    if on_message is not None:
                        on_message(meta)
                    yield id, meta
            iterations += 1
            if not waiting or (max_iterations and iterations >= max_iterations):
                return
            if unseen := insert.uncommitted() & waiting.keys():
                raise RuntimeError(
                    f"task {min(unseen)} was called in this transaction, which is still open: no"
                    " worker sees its job before the commit; get its result after that"
                )
            if on_interval:
                on_interval()
            waited = time.monotonic() - began
            if timeout is not None and waited >= timeout:
                raise TimeoutError(f"the operation timed out after {timeout} s")
            pause = min(max(SHORTEST_PAUSE, waited / 10), LONGEST_PAUSE)
            time.sleep(pause if timeout is None else min(pause, timeout - waited))

    def _forget(self, task_id: str) -> None:
        if not execute(_FORGET, task=task_id) and not self._has_no_inner():
            self.inner.forget(task_id)

    # --- Groups ---

    def _save_group(self, group_id: str, result: Any) -> Any:
        execute(_SAVE_GROUP, task=group_id, meta=json.dumps({"result": result.as_tuple()}))
        return result

    def _restore_group(self, group_id: str) -> dict[str, Any] | None:
        rows = query(_GROUP, task=group_id)
        if rows:
            return {"result": result_from_tuple(json.loads(rows[0][0])["result"], self.app)}
        if self._has_no_inner():
            return None
        meta: dict[str, Any] | None = self.inner.get_group_meta(group_id)
        return meta

    def _delete_group(self, group_id: str) -> None:
        if not execute(_FORGET, task=group_id) and not self._has_no_inner():
            self.inner.delete_group(group_id)

    def cleanup(self) -> None:
        """Results are deleted with their jobs."""
        if not self._has_no_inner():
            self.inner.cleanup()
