"""nginx and Caddy with the configurations in config/servers/, on a port of their own."""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.kit import PATIENCE, ROOT, wait_until
from tests.servers.platform import free_ports
from tests.servers.raw import Authority

CONFIGURATIONS = ROOT / "config" / "servers"
CLIENT = "127.0.0.2"
"""The address of `Proxy.client`; all others have 127.0.0.1."""
NGINX = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/tailrace.conf;
}}
"""


@dataclass
class Proxy:
    """A proxy that ends TLS."""

    port: int
    folder: Path
    authority: Path

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def client(self) -> httpx.Client:
        """Return a client with an address of its own."""
        verified = ssl.create_default_context(cafile=str(self.authority))
        transport = httpx.HTTPTransport(verify=verified, local_address=CLIENT)
        return httpx.Client(base_url=self.url, transport=transport, timeout=PATIENCE)

    def connect(self, data: bytes) -> ssl.SSLSocket:
        """Return a connection that has sent `data`."""
        context = ssl.create_default_context(cafile=str(self.authority))
        plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        peer = context.wrap_socket(plain, server_hostname="localhost")
        peer.sendall(data)
        return peer

    def logs(self) -> str:
        """Return all that it has logged."""
        return "".join(log.read_text() for log in self.folder.glob("*.log"))


@contextmanager
def proxy(name: str, folder: Path, backend: int) -> Iterator[Proxy]:
    """Start nginx or Caddy in front of the port `backend`; skip without it."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if not program:
        pytest.skip(f"{name} is not installed; scripts/install-system-packages does it")
    (port,), authority = free_ports(1), Authority(folder)
    authority.context("localhost")  # writes server.pem
    command = {"nginx": _nginx, "caddy": _caddy}[name](folder, port, backend)
    with (folder / "output.log").open("wb") as output:
        process = subprocess.Popen(
            [program, *command],
            env={**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
            stdout=output,
            stderr=output,
        )
    running = Proxy(port, folder, authority.file)
    try:
        wait_until(lambda: _answers(running, process), what=f"{name} starts")
        yield running
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _answers(running: Proxy, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, running.logs()
    try:
        with running.client() as client:
            return client.get("/healthz/live").status_code == 200
    except httpx.TransportError:
        return False


def _nginx(folder: Path, port: int, backend: int) -> list[str]:
    text = (CONFIGURATIONS / "nginx.conf").read_text()
    for written, here in (
        ("127.0.0.1:8000", f"127.0.0.1:{backend}"),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("listen 80", f"listen 127.0.0.1:{free_ports(1)[0]}"),
        ("/etc/ssl/tailrace.pem", f"{folder}/server.pem"),
        ("/etc/ssl/tailrace.key", f"{folder}/server.pem"),
        ("/var/log/nginx/", f"{folder}/"),
    ):
        assert written in text
        text = text.replace(written, here)
    (folder / "tailrace.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, user=user))
    return ["-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "start.log")]


def _caddy(folder: Path, port: int, backend: int) -> list[str]:
    text = (CONFIGURATIONS / "Caddyfile").read_text()
    for written, here in (
        ("reverse_proxy 127.0.0.1:8000", f"reverse_proxy 127.0.0.1:{backend}"),
        (
            "tailrace.example.org {",
            f"https://localhost:{port} {{\n\ttls {folder}/server.pem {folder}/server.pem",
        ),
        ("{\n\tservers {", "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers {"),
    ):
        assert written in text
        text = text.replace(written, here, 1)
    (folder / "Caddyfile").write_text(text)
    return ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
