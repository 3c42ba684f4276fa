"""The processes of the Procfile under one roof: started together, stopped together."""

import os
import signal
import socket
import sys
from pathlib import Path

from honcho import manager as honcho
from honcho.environ import parse_procfile

from config import settings

# Longer than honcho's own 5 s: a worker ends the drain that it has begun.
STOP_SECONDS = settings.JOBS_DRAIN_SECONDS + 15
SAMPLE_POLL_SECONDS = 2


def with_sample_backend() -> bool:
    """Whether the sample backend runs: only when no real source of events is named."""
    return not settings.OBS_BACKENDS and not settings.BUS_SOURCE_URL


def names() -> list[str]:
    """The processes of the Procfile that run here."""
    everything = parse_procfile(_procfile().read_text()).processes
    wanted = {
        "backend": with_sample_backend(),
        "bus": bool(settings.BUS_SOURCE_URL),
        "inlet": bool(settings.PHOTOS_KAFKA_INLET_TOPIC),
    }
    return [name for name in everything if wanted.get(name, True)]


def taken_port() -> str | None:
    """The variable whose port is in use, with the port, or None."""
    wanted = {"WEB_PORT": settings.WEB_HOST, "FLOWER_PORT": "127.0.0.1"}
    if with_sample_backend():
        wanted["SAMPLE_BACKEND_PORT"] = "127.0.0.1"
    for name, host in wanted.items():
        port = getattr(settings, name)
        if not _is_free(host, port):
            return f"{name}: port {port} is taken; set {name} to a free one"
    return None


def run_all() -> int:
    """Run the processes until one ends or somebody stops us; give the exit status."""
    honcho.KILL_WAIT = STOP_SECONDS
    house = honcho.Manager()
    commands = parse_procfile(_procfile().read_text()).processes
    environment = _environment()
    for name in names():
        house.add_process(name, commands[name], env=environment, cwd=str(settings.BASE_DIR))
    # A closed terminal must not leave them behind.
    signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    house.loop()
    stopped_by_us = {honcho.SIGNALS[number]["rc"] for number in honcho.SIGNALS}
    status = house.returncode or 0
    return 0 if status in stopped_by_us else status


def _procfile() -> Path:
    return settings.BASE_DIR / "Procfile"


def _environment() -> dict[str, str]:
    """Our environment, with the ports and the sample backend spelled out for the Procfile."""
    found = dict(os.environ)
    found["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{found.get('PATH', '')}"
    found["PYTHONUNBUFFERED"] = "1"
    for name in ("WEB_PORT", "FLOWER_PORT", "SAMPLE_BACKEND_PORT", "WORKER_CONCURRENCY"):
        found[name] = str(getattr(settings, name))
    if with_sample_backend():
        found["OBS_BACKEND_URL"] = f"sample=http://127.0.0.1:{settings.SAMPLE_BACKEND_PORT}"
        found.setdefault("OBS_POLL_SECONDS", str(SAMPLE_POLL_SECONDS))
    return found


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
