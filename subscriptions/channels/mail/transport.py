"""The mail servers of this process: Django's EMAIL_* settings, and those in MORE_MAIL_SERVERS."""

import os
from typing import Any

from django.conf import global_settings, settings

from tailrace.subscriptions.channels.mail.mail_server import MailServer

_OPTIONS = {
    "EMAIL_BACKEND": "backend",
    "EMAIL_HOST": "host",
    "EMAIL_PORT": "port",
    "EMAIL_HOST_USER": "username",
    "EMAIL_HOST_PASSWORD": "password",
    "EMAIL_USE_TLS": "use_tls",
    "EMAIL_USE_SSL": "use_ssl",
    "EMAIL_TIMEOUT": "timeout",
    "EMAIL_FILE_PATH": "file_path",
}
_servers: dict[str, MailServer] = {}
os.register_at_fork(after_in_child=_servers.clear)  # a child process has none of their threads


def options_by_name() -> dict[str, dict[str, Any]]:
    """Return the arguments of Django's `get_connection` for all servers, by name (`host:port`)."""
    first = {name: getattr(settings, name, None) for name in _OPTIONS}
    by_name = {}
    for values in (first, *settings.MORE_MAIL_SERVERS):
        options = {
            option: values.get(name, getattr(global_settings, name, None))
            for name, option in _OPTIONS.items()
        }
        module = str(options["backend"]).split(".")[-2]
        by_name[f"{options['host']}:{options['port']}" if module == "smtp" else module] = options
    return by_name


def server(name: str) -> MailServer:
    """Return the server with this name. Call it only in the event loop."""
    options, known = options_by_name()[name], _servers.get(name)
    if known is None or known.is_closed or known.options != options:
        known = _servers[name] = MailServer(name, options)
    return known


def waiting(name: str) -> int:
    """Return the number of mails of this process that wait for the server."""
    known = _servers.get(name)
    return 0 if known is None or known.is_closed else known.waiting()


def close() -> None:
    """Close all connections."""
    while _servers:
        _servers.popitem()[1].close()
