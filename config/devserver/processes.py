"""The processes of `make run`, from the Procfile and from the apps, run in the foreground. `reload`
restarts those with our code when it changes. All end with this process, even if it is killed:

    make run ── a process of honcho for each command ── `restarter` ── the command
                  └─ ends with its parent                └─ ends with its parent, after its command
"""

import os
import shlex
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from honcho import manager as honcho
from honcho.environ import parse_procfile
from honcho.process import Process as HonchoProcess

from tailrace.config.devserver.terminal import Terminal
from tailrace.environment.discovery import import_modules
from tailrace.environment.folders import PACKAGE_DIR
from tailrace.environment.processes import Process
from tailrace.samples import processes as samples

# Longer than honcho's own 5 s: running calls of a worker have SHUTDOWN_TIMEOUT seconds to end.
STOP_SECONDS = settings.SHUTDOWN_TIMEOUT + 5
PARENT_SECONDS = 0.5
"""Interval in which a process checks whether its parent has ended."""
RESTARTED = ("web", "worker", "beat")
"""The processes of the Procfile that are restarted when the code changes."""
PROCFILE = Path(__file__).with_name("Procfile")
MARK = settings.VAR_DIR / "reload"
"""The file that `reload` touches to restart them."""
CORE_PORTS = {"WEB_PORT": settings.WEB_HOST, "FLOWER_PORT": "127.0.0.1"}


def app_processes() -> list[Process]:
    """Return the processes that the samples and the apps want to run with the current settings."""
    return [
        process
        for module in [samples, *import_modules("processes")]
        for process in getattr(module, "PROCESSES", ())
        if process.runs()
    ]


def app_addresses() -> dict[str, str]:
    """Return where to look at what the samples and the apps show, by title."""
    return _lines("addresses")


def app_accounts() -> dict[str, str]:
    """Return the users of the samples and the apps to sign in as, by title."""
    return _lines("accounts")


def _lines(function: str) -> dict[str, str]:
    lines: dict[str, str] = {}
    for module in [samples, *import_modules("processes")]:
        if hasattr(module, function):
            lines |= getattr(module, function)()
    return lines


def commands() -> dict[str, str]:
    """Return the shell commands to run, by name."""
    own = parse_procfile(PROCFILE.read_text()).processes
    own |= {process.name: process.command for process in app_processes() if process.command}
    watch = {"reload": f"exec python -m tailrace.config.devserver.reload {shlex.quote(str(MARK))}"}
    return watch | {
        name: _restarter_command(command, str(MARK) if name in RESTARTED else "")
        for name, command in own.items()
    }


def _restarter_command(command: str, mark: str) -> str:
    arguments = [mark, str(STOP_SECONDS), command]
    return f"exec python -m tailrace.config.devserver.restarter {shlex.join(arguments)}"


def port_in_use() -> str | None:
    """Return a message about the first port that is already in use, or None."""
    ports = CORE_PORTS | {process.port: "127.0.0.1" for process in app_processes() if process.port}
    for name, host in ports.items():
        port = getattr(settings, name)
        if not _is_free(host, port):
            return f"{name}: port {port} is in use; set {name} to a free one"
    return None


class _Process(HonchoProcess):
    """The process that runs a command and passes on what it prints, until its parent has ended."""

    def run(self, *args: Any, **options: Any) -> None:
        threading.Thread(target=_exit_with_parent, args=[os.getppid()], daemon=True).start()
        super().run(*args, **options)


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def run_all(terminal: Terminal) -> int:
    """Run the processes until one ends or a signal arrives; return the exit status."""
    honcho.KILL_WAIT = STOP_SECONDS
    manager = honcho.Manager(terminal)
    manager._process_ctor = _Process
    variables = _variables()
    for name, command in commands().items():
        manager.add_process(name, command, env=variables, cwd=str(settings.BASE_DIR))
    # A closed terminal must end the processes, too.
    signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    manager.loop()
    stopped_by_us = {honcho.SIGNALS[number]["rc"] for number in honcho.SIGNALS}
    status = manager.returncode or 0
    return 0 if status in stopped_by_us else status


def _variables() -> dict[str, str]:
    """Return the environment of the processes: our own, with the ports and the apps' variables."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    variables = os.environ | {"PATH": path, "PYTHONUNBUFFERED": "1"}
    # Import this checkout even if another one is installed.
    variables["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(PACKAGE_DIR.parent), os.environ.get("PYTHONPATH")])
    )
    names = [*CORE_PORTS, "WORKER_CONCURRENCY"]
    for process in app_processes():
        names += [process.port] if process.port else []
        variables |= process.variables()
    return variables | {name: str(getattr(settings, name)) for name in names}


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
