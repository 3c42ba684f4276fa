"""A process imports what it serves: neither a worker nor a command imports the pages, or what only
some jobs need."""

import subprocess
import sys

import pytest

from tailrace.environment.folders import PACKAGE_DIR

COSTS = {
    "tailrace.samples": "what only `make run` shows",
    "tailrace.config.urls": "30 MB with all pages, the API and the admin",
    "tailrace.web.api": "7 MB with ninja",
    "ninja": "3 MB",
    "tailrace.jobs.platform.admin": "3 MB with unfold.admin",
    "unfold.admin": "1 MB",
    "onnxruntime": "26 MB",
    "weasyprint": "23 MB",
    "numpy": "10 MB",
    "tokenizers": "3 MB",
    "sentry_sdk": "3 MB, without SENTRY_DSN",
    "confluent_kafka": "3 MB",
    "pygal": "2 MB",
    "opentelemetry.sdk.trace": "2 MB, without a receiver of spans",
    "PIL": "1 MB",
    "prometheus_client": "1 MB",
}
"""What each import costs a process that has all apps (PSS)."""
OF_COMMANDS = {"redis": "8 MB", "psutil": "1 MB, with embedded engines only"}
"""What workers need: their broker."""

WORKER = "from tailrace.config.celery import app; app.loader.import_default_modules()"
COMMAND = """
sys.argv = ["manage.py", "queues"]
from tailrace.config.command_line import main
main()
"""


IMPORTED = """
import linecache
print(*sys.modules, *(f"source:{file}" for file in linecache.cache), sep="\\n")
"""


@pytest.mark.parametrize(
    ("code", "costs"), [(WORKER, COSTS), (COMMAND, COSTS | OF_COMMANDS)], ids=["worker", "command"]
)
def test_nobody_imports_what_others_need(
    code: str, costs: dict[str, str], process_env: dict[str, str]
) -> None:
    env = process_env | {"PYTHONPATH": ":".join(sys.path), "SENTRY_DSN": ""}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{IMPORTED}"],
        env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert "tailrace.jobs.handler" in imported
    assert {name: cost for name, cost in costs.items() if name in imported} == {}
    # To find the source text of its first class, Python looks at all modules: 30 ms.
    assert [file for file in imported if file.startswith(f"source:{PACKAGE_DIR}")] == []
