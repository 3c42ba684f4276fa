"""`python -m tailrace.samples NAME`: run a sample server until it is stopped. It needs no
database."""

import signal
import sys
import threading
from argparse import ArgumentParser
from http.server import ThreadingHTTPServer

from tailrace.environment.folders import var_dir
from tailrace.net.sample_server import SampleServer
from tailrace.samples.builds.server import SampleBackend
from tailrace.samples.protection.service import SampleSources
from tailrace.samples.records.library import sample_library


def backend(port: int) -> ThreadingHTTPServer:
    """Return a build service's backend; its log continues after a restart."""
    server = SampleBackend(port, var_dir() / "sample-backend.jsonl")
    threading.Thread(target=server.run_activity, daemon=True).start()
    return server


def sources(port: int) -> ThreadingHTTPServer:
    """Return a server of leaks, public records and data brokers."""
    return SampleServer(port, SampleSources().respond)


def repository(port: int) -> ThreadingHTTPServer:
    """Return a repository of records that speaks OAI-PMH at /oai."""
    library = sample_library()
    server = SampleServer(port, library.respond)
    library.url = f"http://127.0.0.1:{server.server_port}/oai"
    return server


SERVERS = {"backend": backend, "sources": sources, "repository": repository}


def main() -> None:
    """Run the server, with exit status 0 after SIGINT or SIGTERM."""
    parser = ArgumentParser(prog="python -m tailrace.samples")
    parser.add_argument("name", choices=SERVERS)
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    arguments = parser.parse_args()
    try:
        server = SERVERS[arguments.name](arguments.port)
    except (OSError, OverflowError) as error:
        sys.exit(f"--port {arguments.port}: {error}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"sample {arguments.name}: http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever(poll_interval=0.2)
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
