"""Why did I get this: the reason for each channel, and the button that ends it."""

import re

import pytest

from tailrace.subscriptions.models import EventSubscription, InboxItem
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> Visitor:
    user = person("ann")
    assign_role(FIRST, user)
    return Visitor(user)


def test_inbox_and_mail_lead_to_the_reason_and_one_click_ends_it(
    ann: Visitor, run_jobs, smtp
) -> None:
    event = publish_event(payload={"title": "Faust"})
    run_jobs("subscriptions.notify", "subscriptions.web", "subscriptions.mail")
    path = f"/me/why/{event.id}"
    assert path in ann.get("/me/inbox").content.decode()
    for kind in ("plain", "html"):
        assert path in smtp.received[0].message.get_body((kind,)).get_content()
    page = ann.get(path)
    assert "A play was shown for the first time: Faust" in words(page)
    assert re.search(r"web sent default: on for [^(]+\(as stage owner\)", words(page))
    assert "type=stage.premiere&amp;role=stage_owner&amp;channel=web" in page.content.decode()

    answer = ann.post(f"{path}/mute", {"role": FIRST, "channel": "web"})
    page = ann.get(answer["Location"])
    what = "“A play was shown for the first time” by web, as stage owner"
    assert f"You will no longer be notified of {what}." in words(page)
    assert "web not sent own subscription: off for stage.premiere" in words(page)
    assert EventSubscription.objects.get(user=ann.user).channel == "web"
    undo = re.search(r'name="undo" value="([^"]+)"', page.content.decode())
    assert undo
    ann.post(f"{path}/mute", {"undo": undo[1]})
    assert "The previous setting was restored." in ann.text(path)
    assert not EventSubscription.objects.filter(user=ann.user).exists()
    assert InboxItem.objects.filter(user=ann.user).count() == 1


def test_what_is_no_option_is_not_switched_off(ann: Visitor, run_jobs) -> None:
    event = publish_event()
    run_jobs("subscriptions.notify")
    path = f"/me/why/{event.id}/mute"
    for values in ({}, {"role": FIRST, "channel": "pigeon"}, {"role": "boss", "channel": "web"}):
        assert ann.post(path, values).status_code == 404
    assert not EventSubscription.objects.filter(user=ann.user).exists()
    ann.post(path, {"undo": "x"})
    assert "can no longer be undone" in ann.text(f"/me/why/{event.id}")
