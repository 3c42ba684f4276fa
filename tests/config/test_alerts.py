"""The alert rules and the dashboard fit together with what /metrics shows."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from django.test import Client

from tests.config.test_metrics import TOKEN, scrape
from tests.kit import PATIENCE, ROOT

MONITORING = ROOT / "config" / "monitoring"
ALERTS, DASHBOARD = MONITORING / "alerts.yml", MONITORING / "dashboard.json"
METRIC = re.compile(r"\btailrace_\w+")


def promtool(*arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
    """Run it with this input, or skip where it could not be installed."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed: Debian's package prometheus has it")
    return subprocess.run(
        [program, *arguments],
        input=input,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def dashboard_expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_promtool_accepts_the_rules() -> None:
    done = promtool("check", "rules", str(ALERTS))
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_for_its_trouble_and_for_no_healthy_system(tmp_path: Path) -> None:
    tests = (Path(__file__).parent / "alerts_test.yml").read_text()
    (tmp_path / "tests.yml").write_text(tests.replace("ALERTS", str(ALERTS)))
    done = promtool("test", "rules", str(tmp_path / "tests.yml"))
    assert done.returncode == 0, done.stdout + done.stderr
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    for tested in yaml.safe_load(tests)["tests"]:
        names = {each["alertname"] for each in tested["alert_rule_test"]}
        assert names == {rule["alert"] for rule in rules}


def test_promtool_accepts_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(dashboard_expressions())
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = promtool("check", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.django_db
def test_each_metric_of_dashboard_alerts_and_docs_is_shown(settings) -> None:
    settings.HEALTH_TOKEN = TOKEN
    client = Client(headers={"Authorization": f"Bearer {TOKEN}"})
    scrape(client)
    shown = set(re.findall(r"^# TYPE (\w+) \w+$", client.get("/metrics").text, re.MULTILINE))
    used = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for text in (DASHBOARD.read_text(), ALERTS.read_text())
        for name in METRIC.findall(text)
    }
    assert used - shown == set()
    table = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    named = set(re.findall(r"`(tailrace_\w+)`", table))
    tables = re.compile(r"tailrace_jobs_(job|live|pulse|done_\d+)")
    assert {name for name in named if not tables.fullmatch(name)} == shown
