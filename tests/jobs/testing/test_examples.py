"""The examples of docs/how-to/testing.md: each code block there stands in this file."""

import re
import textwrap
from pathlib import Path

import pytest
from django.core import mail
from django.test import TestCase

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.testing import assert_not_owed, assert_owed, perform, run_flow, run_owed
from tests.jobs.testing.shop import MonthlyReport, NotifyWarehouse, OrderPaid, SendReceipt
from tests.kit import ROOT


@pytest.mark.django_db
def test_a_paid_order_owes_a_receipt():
    (paid,) = publish(NewEvent(OrderPaid, {"order": 7, "email": "ann@example.org"}))
    assert_owed(SendReceipt, event=paid)
    run_owed()
    assert mail.outbox[0].to == ["ann@example.org"]
    assert_not_owed(SendReceipt)


class Receipts(TestCase):
    def test_a_paid_order_is_mailed_its_receipt(self):
        publish(NewEvent(OrderPaid, {"order": 7, "email": "ann@example.org"}))
        assert run_owed(queue=SendReceipt) == 1
        assert mail.outbox[0].body == "Order 7"


@pytest.mark.django_db
def test_a_report_counts_the_orders_of_its_month():
    report = perform(MonthlyReport, {"month": "2026-10"})
    assert (report.state, report.result) == ("completed", {"month": "2026-10", "orders": 0})


@pytest.mark.django_db
def test_a_report_of_no_month_is_tried_again():
    report = perform(MonthlyReport, {"month": ""})
    assert (report.state, report.error) == ("pending", "no month")


@pytest.mark.django_db
def test_each_month_of_a_year_has_a_report():
    flow = NewFlow("reports of 2026")
    flow.group(MonthlyReport, [{"month": f"2026-{month:02}"} for month in range(1, 13)])
    status = run_flow(flow)
    assert (status.state, status.counts) == ("completed", {"completed": 12})


@pytest.mark.django_db
def test_the_warehouse_gets_an_order_after_it_was_away(settings, clock, webhook_receiver):
    settings.SHOP_WAREHOUSE = webhook_receiver.url
    settings.SHOP_SECRET = webhook_receiver.secret
    webhook_receiver.answer(503)
    publish(NewEvent(OrderPaid, {"order": 7, "email": "ann@example.org"}))
    run_owed(queue="shop.notify_warehouse")
    assert_owed(NotifyWarehouse)
    clock.step(100)
    run_owed(queue="shop.notify_warehouse")
    first, second = webhook_receiver.assert_received(2)
    assert first.id == second.id
    assert second.json == {"order": 7, "email": "ann@example.org"}


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)


def test_each_example_of_the_docs_is_run() -> None:
    here = Path(__file__).read_text()
    examples = blocks(ROOT / "docs" / "how-to" / "testing.md")
    assert len(examples) >= 4
    for example in examples:
        imports = {line for line in example.splitlines() if line.startswith(("import", "from"))}
        code = "\n".join(line for line in example.splitlines() if line not in imports)
        assert textwrap.dedent(code).strip() in here
        assert {line for line in imports if " domains." not in line} <= {*here.splitlines()}


@pytest.mark.django_db
def test_a_message_shows_what_is_owed_instead() -> None:
    with pytest.raises(AssertionError, match="There are no jobs"):
        assert_owed(SendReceipt)
    (paid,) = publish(NewEvent(OrderPaid, {"order": 7, "email": "ann@example.org"}))
    enqueue(MonthlyReport, {"month": "2026-10"})
    with pytest.raises(AssertionError) as caught:
        assert_owed(MonthlyReport, payload={"month": "2026-11"})
    assert "expected: a job of shop.monthly_report with {'month': '2026-11'} in" in str(
        caught.value
    )
    assert re.search(
        r"job \d+ of shop.monthly_report payload {'month': '2026-10'}, pending", str(caught.value)
    )
    because = (
        rf"job \d+ of shop.send_receipt because of event {paid.id} \(shop.order_paid\), pending"
    )
    assert re.search(because, str(caught.value))
    with pytest.raises(AssertionError, match="owed: 1, expected: 2 job"):
        assert_owed(SendReceipt, event=paid, count=2)
    with pytest.raises(AssertionError, match=r"owed, but should not be: job of shop.send_receipt"):
        assert_not_owed(SendReceipt, event=paid.id)
    assert_not_owed(SendReceipt, routing_key="x")
    with pytest.raises(LookupError, match=r"did you mean 'shop.send_receipt'"):
        run_owed(queue="shop.send_reciept")


@pytest.mark.django_db
def test_an_error_in_a_handler_fails_the_test_with_its_traceback() -> None:
    enqueue(MonthlyReport, {"month": ""})
    with pytest.raises(AssertionError, match=r'(?s)and is pending.*raise ValueError\("no month"\)'):
        run_owed()
    enqueue(MonthlyReport, {"month": ""})
    assert run_owed(may_fail=True) == 1


@pytest.mark.django_db
def test_perform_runs_the_job_of_an_event_before_all_others() -> None:
    first, second = publish(
        NewEvent(OrderPaid, {"order": n, "email": "ann@example.org"}) for n in (1, 2)
    )
    assert perform(SendReceipt, event=second).event_id == second.id
    assert [message.body for message in mail.outbox] == ["Order 2"]
    assert_owed(SendReceipt, event=first, count=1)
    with pytest.raises(AssertionError, match="is completed, not pending"):
        perform(SendReceipt, event=second)


@pytest.mark.django_db
def test_a_webhook_with_a_wrong_signature_is_refused(settings, webhook_receiver) -> None:
    settings.SHOP_WAREHOUSE = webhook_receiver.url
    settings.SHOP_SECRET = "whsec_" + "QUJD" * 8
    publish(NewEvent(OrderPaid, {"order": 7, "email": "ann@example.org"}))
    run_owed(queue=NotifyWarehouse)
    with pytest.raises(AssertionError, match=r"received: 0, expected: 1\n.*was not made with"):
        webhook_receiver.assert_received()
