"""Fork Python processes from one that has done their imports already, which most of a start is.

Each test process starts one server of forks at first use. It has imported packages of others, and
nothing of ours, so that a fork runs all of our code from its first line on, with its own
environment: half of a start. An environment in which `manage.py` or Celery's worker is started
again and again gets a server of its own, which has imported our code, too: a fork of it takes a
tenth.

What says how a process starts starts without any of this, by `subprocess`: one of each kind in
tests/security/test_start_up.py, commands in tests/config/test_command_line.py, workers of each pool
in tests/jobs/engine/workers/test_pools.py, the whole platform in tests/config/test_run.py.
"""

import ctypes
import gc
import inspect
import json
import mmap
import os
import runpy
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SET_CHILD_SUBREAPER = 36
"""Of prctl(2): an orphan below this process becomes its child."""
LONGEST = 200_000
"""Bytes of a request: its words and its environment."""
PACKAGES = """
celery.apps.worker celery.backends.base celery.bin.celery celery.concurrency.prefork
celery.worker.consumer cronsim cryptography.fernet cryptography.x509 dateutil.parser
defusedxml.ElementTree django.contrib.admin django.contrib.postgres.fields
django.core.handlers.wsgi django.core.management.commands.check
django.db.backends.postgresql.base django.db.migrations.executor django.db.models.sql.compiler
django.template.defaulttags django.template.loader_tags django.test.client django.views.generic
environ gunicorn.app.wsgiapp httpcore httpx kombu.transport.redis psutil psycopg.types.json
py_vapid pydantic.json_schema pydantic.networks redis sqlparse structlog yaml
""".split()
"""Modules of others that need no settings, and import most of what our code imports."""

_libc = ctypes.CDLL(None, use_errno=True)
_lock = threading.Lock()


class Server:
    """A process that forks itself."""

    def __init__(
        self,
        kind: str,
        env: Mapping[str, str],
        origin: "Server | None" = None,
        python: str | Path = sys.executable,
    ) -> None:
        """`kind`: what it has imported, a key of IMPORTS; `origin`: the server to fork it from, if
        `python` does not start it."""
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = ["-m", "tests.forks", kind]
        unbuffered = {**env, "PYTHONUNBUFFERED": "1"}
        with theirs:
            if origin:
                self.process: subprocess.Popen[Any] = Fork(
                    words, server=origin, env=unbuffered, stdin=theirs
                )
            else:
                self.process = subprocess.Popen(
                    [str(python), *words], cwd=ROOT, env=unbuffered, stdin=theirs
                )

    def fork(self, request: dict[str, Any], files: Sequence[int]) -> int:
        """Let a fork become what the request says, with these as its standard files; return its
        process id. It is a child of this process."""
        message = json.dumps(request).encode()
        assert len(message) < LONGEST
        with _lock:
            if _libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl: the fork would not be our child")
            try:
                socket.send_fds(self._line, [message], files)
                answer = self._line.recv(100)
            finally:
                _libc.prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        assert answer, f"the server of forks ended with status {self.process.wait()}"
        return int(answer)

    def end(self) -> None:
        """Let it end; its forks go on."""
        self._line.close()
        self.process.wait()


class Fork(subprocess.Popen[Any]):
    """`python` with these words, as Popen starts it, but forked."""

    def __init__(
        self,
        words: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        server: Server | None = None,
        **options: Any,
    ) -> None:
        self._server = server
        env = os.environ if env is None else env
        super().__init__([sys.executable, *map(str, words)], env=env, cwd=cwd, **options)

    def _execute_child(self, *values: Any) -> None:
        """Popen calls this when it has made the pipes."""
        given = inspect.signature(super()._execute_child).bind(*values).arguments  # type: ignore[misc]
        request = {
            "words": given["args"][1:],
            "env": dict(given["env"]),
            "cwd": str(given["cwd"]),
            "new_session": next(on for key, on in given.items() if "start_new_session" in key),
        }
        pipes = (given["p2cread"], given["c2pwrite"], given["errwrite"])
        files = [number if pipe == -1 else pipe for number, pipe in enumerate(pipes)]
        server = self._server or _server_for(request)
        self.pid = server.fork(request, files)
        self._child_created = True
        names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in names))  # type: ignore[attr-defined]


def run(
    words: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    input: Any = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run `python` with these words as subprocess.run does, but forked."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Fork(words, env=env, **options) as process:
        try:
            output, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


def start_celery(
    arguments: Sequence[str], env: dict[str, str], log: Path, *, warm: bool = True
) -> subprocess.Popen[bytes]:
    """Start `celery` with these arguments and this environment, in a session of its own; what it
    writes goes to the end of `log`. `warm`: fork it."""
    words = ["-m", "celery", *arguments]
    options: dict[str, Any] = {
        "cwd": ROOT, "env": env, "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT,
        "start_new_session": True,
    }  # fmt: skip
    with log.open("ab") as file:
        if warm:
            return Fork(words, stdout=file, **options)
        return subprocess.Popen([sys.executable, *words], stdout=file, **options)


Key = tuple[str, frozenset[tuple[str, str]]]
_packages: list[Server] = []
_projects: dict[Key, Server] = {}
_seen: set[Key] = set()
"""What was started with which environment: a server of its own is worth its start for the
second."""


def _server_for(request: dict[str, Any]) -> Server:
    """Return the server that has imported most of what this process needs."""
    if not _packages:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        _packages.append(Server("packages", env))
    words = request["words"]
    ours = words[:4] == ["-m", "celery", "-A", "tailrace.config"]
    kind = "manage" if words[0] == "manage.py" else "celery" if ours else ""
    if not kind or request["cwd"] != str(ROOT):
        return _packages[0]
    pairs = ((name, value) for name, value in request["env"].items())
    key = kind, frozenset(pair for pair in pairs if pair[0] != "PYTEST_CURRENT_TEST")
    if key not in _seen:
        _seen.add(key)
        return _packages[0]
    if key not in _projects:
        _projects[key] = Server(kind, request["env"], _packages[0])
    return _projects[key]


# --- what a server does ---


def _import_packages() -> None:
    for name in PACKAGES:
        import_module(name)


def _import_what_is_there() -> None:
    """Of an environment that lacks what the core does not need."""
    for name in PACKAGES:
        with suppress(ImportError):
            import_module(name)


def _import_for_celery() -> None:
    from tailrace.config.celery import app

    app.loader.import_default_modules()
    app.finalize()


def _import_for_manage() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tailrace.config.settings")
    import django

    from tailrace.config import command_line  # noqa: F401

    django.setup()


IMPORTS = {
    "packages": _import_packages,
    "what is there": _import_what_is_there,
    "celery": _import_for_celery,
    "manage": _import_for_manage,
}


def _serve() -> dict[str, Any]:
    """Fork for each request. Returns the request in each fork; ends when nobody can ask."""
    with socket.socket(fileno=os.dup(0)) as line:
        while True:
            message, files, _flags, _address = socket.recv_fds(line, LONGEST, 3)
            if not message:
                sys.exit()
            assert threading.active_count() == 1, "a process with threads must not be forked"
            reader, writer = os.pipe()
            if not (child := os.fork()):
                break
            os.close(writer)
            os.waitpid(child, 0)  # its own child is an orphan from now on
            line.send(os.read(reader, 100))
            for file in (reader, *files):
                os.close(file)
    if pid := os.fork():
        os.write(writer, str(pid).encode())
        os._exit(0)
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in (reader, writer, *files):
        os.close(file)
    request: dict[str, Any] = json.loads(message)
    return request


def _become(kind: str, request: dict[str, Any]) -> None:
    """Run what the request says, as `python` does."""
    if request["new_session"]:
        os.setsid()
    own = len([ROOT, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    first, *rest = request["words"]
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    script = str(Path(first).resolve().parent)
    sys.path[:own] = ["" if first == "-c" else os.getcwd() if first == "-m" else script, *paths]
    if kind == "celery":
        _run_celery(rest[1:])
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(main))  # noqa: S102
    elif first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def _run_celery(arguments: list[str]) -> None:
    """Run what `python -m celery` runs after it has imported our code."""
    sys.argv = ["celery", *arguments]
    from celery.__main__ import main as celery_main

    from tailrace.config.startup import boot
    from tailrace.jobs.runtime import shutdown

    assert isinstance(shutdown._shared, mmap.mmap)
    shutdown._shared = mmap.mmap(-1, 8)  # the one that was made at import is shared by all forks
    boot.start()  # as tailrace.config.celery does when `celery` imports it
    if {"worker", "beat"} & set(arguments):
        boot.check_server(wait=True)
    sys.exit(celery_main())


def main() -> None:
    gc.disable()  # what is imported stays
    IMPORTS[kind := sys.argv[1]]()
    gc.freeze()
    gc.enable()
    _become(kind, _serve())


if __name__ == "__main__":
    main()
