"""Run the examples of docs/reference/api.md with curl against a server."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit import PATIENCE
from tests.subscriptions.sample_domain import person
from tests.web.jobs.requesting import OPERATOR
from tests.web.program import program

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
EXAMPLES = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
FOLLOWING = "/api/events?types="
"""In the example that reads the events of earlier examples. They appear when older transactions of
the cluster have ended: those of other tests, too."""
UNTIL_EVENTS_APPEAR = """
until [ "$(api "$TAILRACE/api/events?wait=20" | jq '.events | length')" -gt 0 ]; do :; done
"""


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="no curl or no jq")
@pytest.mark.django_db(transaction=True)
def test_the_examples_work(live_server, settings) -> None:
    settings.API_BURST = 1000  # more examples than the requests that one may send at once
    person("bob")
    ann = program(
        "ann",
        may=(
            "tailrace_events.view_event",
            "tailrace_events.view_payload",
            "tailrace_events.add_event",
            *OPERATOR,
        ),
    )
    variables = f"TAILRACE={live_server.url} TOKEN={ann.text}"
    [following] = [number for number, example in enumerate(EXAMPLES) if FOLLOWING in example]
    examples = [*EXAMPLES[:following], UNTIL_EVENTS_APPEAR, *EXAMPLES[following:]]
    script = "\n".join(["set -euo pipefail", f"export {variables}", *examples])
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "did you mean 'builds.build_fail'?" in done.stdout
    assert '"recorded": true' in done.stdout
    assert '"recorded": false' in done.stdout
    assert '"api:ann:/ci"' in done.stdout
    assert "urn:tailrace:problem:not" not in done.stdout
