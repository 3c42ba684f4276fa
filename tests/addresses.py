"""URLs of the engines, for processes that the tests start."""

from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit


def address(database: dict[str, Any]) -> str:
    """Return the DATABASE_URL of one of Django's database descriptions."""
    where = {
        key: database[name] for key, name in (("host", "HOST"), ("port", "PORT")) if database[name]
    }
    user = quote(database["USER"] or "", safe="")
    if database["PASSWORD"]:
        user += ":" + quote(database["PASSWORD"], safe="")
    where |= {
        key: value
        for key, value in database.get("OPTIONS", {}).items()
        if key in ("host", "port", "sslmode")
    }
    return f"postgres://{user}@/{database['NAME']}?{urlencode(where)}"


def key_space(url: str, worker: str) -> str:
    """Return the broker's URL for one test process (gw0, gw1 …): another number, or vhost."""
    number = int(worker.removeprefix("gw")) + 1
    parts = urlsplit(url)
    if parts.scheme == "redis+socket":
        return f"{url.partition('?')[0]}?virtual_host={number}"
    if parts.scheme.startswith("redis"):
        return urlunsplit(parts._replace(path=f"/{int(parts.path.strip('/') or 0) + number}"))
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}_{worker}"))
