"""The Grafana dashboard: Prometheus's own engine evaluates its queries on what a scrape shows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from tailrace.db import clock
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations import breaker
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.maintenance.sweeping.sweep import sweep
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Pulse
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.runtime.invariant import all_invariants
from tests.config.test_alerts import ALERTS, DASHBOARD, METRIC, promtool
from tests.config.test_metrics import TOKEN, Samples, scrape
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Working

TARGET = ("instance", "pod", "job")
"""Labels that Prometheus itself adds."""


def dashboard() -> Any:
    return json.loads(DASHBOARD.read_text())


def queries() -> list[tuple[str, str]]:
    """Return each query as Grafana sends it for all queues, with the template of its legend."""
    return [
        (
            target["expr"].replace("$queue", ".*").replace("$__rate_interval", "5m"),
            target.get("legendFormat", ""),
        )
        for panel in dashboard()["panels"]
        for target in panel["targets"]
    ]


@pytest.fixture
def samples(db: None, settings: Any, django_capture_on_commit_callbacks: Any) -> Samples:
    """Return what a scrape shows of a house in which something of each kind has happened."""
    settings.HEALTH_TOKEN = TOKEN
    sync_declared.sync()
    for turn in ("tick", "sweep", "prune"):
        Pulse.objects.create(name=turn, at=clock.now())
    with django_capture_on_commit_callbacks(execute=True):
        publish(NewEvent(Happened, {"who": "ann"}))
        for do in ("nothing", "permanent", "retry"):
            enqueue(Working, {"do": do})
    drain(Working.name)
    breaker.record_failure(f"{Working.name}:https://away.example.org", "away", at_once=True)
    sweep([rule.name for rule in all_invariants() if rule.every is not None][:1])
    totals.write()
    verdict.forget()
    return scrape(Client(headers={"Authorization": f"Bearer {TOKEN}"}))


def labels_of(samples: Samples) -> dict[str, set[str]]:
    """Return the labels of each metric."""
    names: dict[str, set[str]] = {}
    for name, labels in samples:
        names.setdefault(name, set()).update(label for label, _value in labels)
    return names


def test_each_query_has_an_answer(samples: Samples, tmp_path: Path) -> None:
    """A query of a metric, or of a label's value, that is not there would have none."""
    series = [
        {"series": name + "{" + ",".join(f'{k}="{v}"' for k, v in labels) + "}", "values": "1+1x60"}
        for name, labels in samples
    ]
    answered = [
        {
            "expr": f"count({query}) > bool 0",
            "eval_time": "50m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for query, _legend in queries()
    ]
    file = tmp_path / "dashboard.yml"
    test = {"interval": "1m", "input_series": series, "promql_expr_test": answered}
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}))
    done = promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_label_of_a_query_is_one_of_its_metrics(samples: Samples) -> None:
    known = labels_of(samples)
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    for query, legend in [*queries(), *((rule["expr"], "") for rule in rules)]:
        metrics = METRIC.findall(query)
        assert set(metrics) <= set(known), query
        labels = {*TARGET, *(label for metric in metrics for label in known[metric])}
        kept = re.findall(r"\b(?:by|on|without|ignoring) *\(([^)]*)\)", query)
        assert {label.strip() for group in kept for label in group.split(",")} - {""} <= labels
        for metric, matchers in re.findall(r"(\w+)\{([^}]*)\}", query):
            assert set(re.findall(r"(\w+) *(?:=~|!~|!=|=)", matchers)) <= known[metric], query
        assert set(re.findall(r"{{ *(\w+) *}}", legend)) <= labels, legend


def test_the_series_of_the_alerts_tests_are_those_of_a_scrape(samples: Samples) -> None:
    known = labels_of(samples)
    tests = yaml.safe_load((Path(__file__).parent / "alerts_test.yml").read_text())["tests"]
    for each in (series["series"] for test in tests for series in test["input_series"]):
        metric, _, labels = each.partition("{")
        assert set(re.findall(r"(\w+)=", labels)) - {*TARGET} == known[metric], each


def test_it_has_what_an_import_needs() -> None:
    """Fields of Grafana's dashboard model; no id of another Grafana, no data source of its own."""
    board = dashboard()
    assert board["id"] is None
    assert 8 <= len(board["uid"]) <= 40
    assert board["title"]
    assert board["schemaVersion"] >= 36, "of Grafana 9, which names data sources by type and uid"
    assert {"panels", "time", "templating", "annotations", "tags", "version"} <= set(board)
    source, queue = board["templating"]["list"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    reference = {"type": "prometheus", "uid": f"${{{source['name']}}}"}
    for each in (queue, *board["panels"], *(t for p in board["panels"] for t in p["targets"])):
        assert each["datasource"] == reference
    for panel in board["panels"]:
        assert panel["title"]
        assert panel["type"] in {"stat", "timeseries"}
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs)) > 0


def test_no_panel_covers_another() -> None:
    covered: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        assert 0 <= at["x"] <= at["x"] + at["w"] <= 24
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not covered & cells, panel["title"]
        covered |= cells
