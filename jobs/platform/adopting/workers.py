"""Ask the running workers which queues they consume, and with which pool."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

CONNECT_SECONDS = 2
REPLY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Workers:
    """The queues and pools in the replies of the workers that answered in time."""

    queues: dict[str, list[str]] = field(default_factory=dict)
    """The nodes that consume each queue."""
    pools: dict[str, str] = field(default_factory=dict)
    """The pool of each node, such as `prefork`."""


def ask(app: Celery) -> Workers | None:
    """Return the workers' replies; None if the broker does not answer, or no worker does."""
    try:
        with app.connection_for_write(connect_timeout=CONNECT_SECONDS) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_SECONDS)
            inspect = app.control.inspect(timeout=REPLY_SECONDS, connection=connection)
            active, stats = inspect.active_queues(), inspect.stats()
    except (OperationalError, OSError):
        return None
    if not active:
        return None
    queues: dict[str, list[str]] = {}
    for node, consumed in sorted(active.items()):
        for queue in consumed:
            queues.setdefault(queue["name"], []).append(node)
    pools = {node: _pool(facts) for node, facts in (stats or {}).items()}
    return Workers(queues, pools)


def _pool(stats: Mapping[str, Any]) -> str:
    """Return `prefork` for "celery.concurrency.prefork:TaskPool"."""
    path = str(stats.get("pool", {}).get("implementation", ""))
    return path.partition(":")[0].rpartition(".")[2]
