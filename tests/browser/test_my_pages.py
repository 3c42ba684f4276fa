"""A person's pages in a real browser: choosing, reading, webhooks; and how they look."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, User
from django.utils.timezone import now
from playwright.sync_api import Locator, Page, expect

from tailrace.events.readers import Readers
from tailrace.jobs.models import Job
from tailrace.subscriptions.channels.mail import unsubscribe
from tailrace.subscriptions.channels.push import vapid
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.channels.webhook.operations.send_test import SendTest
from tailrace.subscriptions.channels.webhook.snippets import snippets
from tailrace.subscriptions.models import Delivery, EventSubscription, InboxItem, Notification
from tailrace.subscriptions.notifications.preferences import defaults
from tailrace.subscriptions.plans import status
from tests.browser.axe import findings
from tests.browser.screens import SCREENS, Scheme, look_at, show_on
from tests.kit import at_once, wait_until
from tests.servers.web import Response, serving
from tests.subscriptions.plans.kit import make_plans
from tests.subscriptions.plans.kit import subscribe as subscribe_to_plan
from tests.subscriptions.sample_domain import (
    FIRST,
    Gala,
    Rehearsal,
    assign_role,
    holders,
    publish_event,
    readers,
    subscribe,
)

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAGES = ("subscriptions", "inbox", "feeds", "endpoints", "plan", "preferences")


@pytest.fixture
def ann() -> User:
    user = User.objects.create_user("ann", "ann@example.org", password="a long password")
    assign_role(FIRST, user)
    defaults.create_missing()
    return user


def _something_of_everything(user: User) -> None:
    """Fill each page: choices, a group's word, an inbox, endpoints, tokens."""
    crew = Group.objects.create(name="release-engineers-of-the-whole-distribution")
    user.groups.add(crew)
    subscribe("stage.gala", user=user, channel="web")
    row = EventSubscription.objects.filter(user=None, event_type="stage.premiere", role=FIRST)
    row.filter(channel="rss").update(state="off")
    subscribe(user=user, channel="mail", pace="daily", subject_pattern="devel:languages:python:*")
    subscribe(group=crew, channel="rss")
    for number, title in enumerate(("Faust", "Hamlet " * 12, "x" * 120, "Secret")):
        event = publish_event(Gala if number % 2 else Rehearsal, payload={"title": title})
        owner, group = (None, crew) if number == 1 else (user, None)
        inbox.put(event, user=owner, group=group, role=FIRST)
        Notification.objects.create(event_id=event.id, user=user, role=FIRST)
    readers["Secret"] = Readers.of(["somebody"])
    first = InboxItem.objects.earliest("pk")
    inbox.mark(user, [first.pk], read=True)
    endpoint, _secret = endpoints.create(user, "https://example.org/" + "hook/" * 30, "mine")
    for code in (200, 500, None):
        id = endpoints.send_test(endpoint)
        delivery = Delivery.objects.create(
            endpoint=endpoint, message_id=f"msg_{code}_0123456789abcdef0123456789", attempt=1,
            milliseconds=120, status=code, event_id=event.id, answer="<p>hm</p>",
            outcome="ok" if code == 200 else "failed",
            error="" if code == 200 else "did not answer within 15 s " * 4,
        )  # fmt: skip
        done = {"state": "completed", "result": {"delivery": delivery.pk}, "finished_at": now()}
        Job.objects.filter(pk=id).update(**done)
    endpoints.pause(endpoint)
    endpoints.change(endpoint, event_types=["stage.gala", "stage.premiere"], subject_pattern="*")
    make_plans()
    status.mark_past_due([subscribe_to_plan("premium", user).pk])


def test_a_small_screen_folds_the_menu_behind_a_button(
    ann: User, visit: Callable[..., Page]
) -> None:
    page = visit(ann, "/me/preferences", width=375)
    menu, links = page.get_by_role("button", name="Menu"), page.get_by_label("Your pages")
    expect(links).to_be_hidden()
    expect(menu).to_have_attribute("aria-expanded", "false")
    menu.press("Enter")
    expect(menu).to_have_attribute("aria-expanded", "true")
    expect(links.get_by_role("link", name="Inbox")).to_be_visible()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    assert findings(page) == []
    look_at(page, "menu")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(links).to_be_hidden()
    expect(menu).to_be_focused()
    show_on(page, 1440, "light")
    expect(menu).to_be_hidden()
    expect(links).to_be_visible()


def _open_family(page: Page, title: str = "Play") -> None:
    page.locator("summary", has=page.get_by_role("heading", name=title, exact=True)).click()
    expect(page.locator("#stage-premiere")).to_be_visible()


def _cell(page: Page, topic: str, key: str) -> Locator:
    row = page.locator(f"#{topic} tbody tr", has_text=FIRST.replace("_", " "))
    return row.locator(f"a.me-word[href$='channel={key}']")


def test_the_dialog_saves_and_returns_the_focus(ann: User, visit: Callable[..., Page]) -> None:
    publish_event(payload={"title": "devel:faust"})
    publish_event(payload={"title": "hamlet"})
    page = visit(ann, "/me/subscriptions")
    _open_family(page)
    cell = _cell(page, "stage-premiere", "mail")
    expect(cell).to_have_text("mail on")
    cell.press("Enter")
    editor = page.locator("#editor")
    expect(editor).to_be_visible()
    expect(editor.get_by_label("default (on)")).to_be_focused()
    expect(editor).to_contain_text("this would have sent 2 notifications")

    editor.get_by_label("off", exact=True).check()
    expect(editor).to_contain_text("It is off:")
    editor.get_by_label("Only these subjects").fill("devel:*")
    editor.get_by_role("button", name="Save").click()
    expect(editor.locator(".me-error")).to_contain_text("off applies to all subjects")
    assert not EventSubscription.objects.filter(user=ann).exists()

    editor.get_by_label("on", exact=True).check()
    editor.get_by_label("Pace").select_option("daily")
    expect(editor).to_contain_text("this would have sent 1 notification:")
    editor.get_by_role("button", name="Save").click()
    expect(editor).to_be_hidden()
    expect(cell).to_have_text("mail daily: devel:*")
    expect(cell).to_be_focused()
    expect(page.locator("#status")).to_contain_text("Saved. mail about")
    expect(page.locator(".me-pill", has_text="1 set")).to_be_visible()
    row = EventSubscription.objects.get(user=ann)
    assert (row.state, row.pace, row.subject_pattern) == ("on", "daily", "devel:*")

    cell.click()
    editor.get_by_label("default (on)").check()
    editor.get_by_role("button", name="Save").click()
    expect(cell).to_have_text("mail on")
    assert not EventSubscription.objects.filter(user=ann).exists()

    cell.click()
    expect(editor).to_be_visible()
    page.keyboard.press("Escape")
    expect(editor).to_be_hidden()
    expect(cell).to_be_focused()


def test_typing_finds_event_types(ann: User, visit: Callable[..., Page]) -> None:
    page = visit(ann, "/me/subscriptions")
    page.get_by_label("Find an event type").press_sequentially("guests")
    expect(page.locator("#stage-gala")).to_be_visible()
    expect(page.locator(".me-family")).to_have_count(1)
    expect(page.get_by_label("Find an event type")).to_be_focused()
    _cell(page, "stage-gala", "web").click()
    page.locator("#editor").get_by_label("off", exact=True).check()
    page.locator("#editor").get_by_role("button", name="Save").click()
    expect(_cell(page, "stage-gala", "web")).to_have_text("web off")


def test_the_inbox_is_read_in_place_and_counts_by_itself(
    ann: User, visit: Callable[..., Page]
) -> None:
    for title in ("Faust", "Hamlet"):
        inbox.put(publish_event(payload={"title": title}), user=ann, group=None, role=FIRST)
    page = visit(ann, "/me/inbox")
    count = page.locator("#unread")
    expect(count).to_have_text("2 unread")
    button = page.get_by_role("button", name="Mark read: A play was shown for the first time: F")
    button.press("Enter")
    expect(count).to_have_text("1 unread")
    expect(page.locator(".me-unread")).to_have_count(1)
    again = page.get_by_role("button", name="Mark unread: A play was shown for the first time: F")
    expect(again).to_be_focused()
    inbox.put(publish_event(payload={"title": "Macbeth"}), user=ann, group=None, role=FIRST)
    page.evaluate("htmx.trigger(document.body, 'inbox')")
    expect(count).to_have_text("2 unread")
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.locator("main")).to_contain_text("1 item marked as read.")
    expect(page.locator(".me-unread")).to_have_count(1)


def test_a_webhook_is_added_tested_and_deleted(
    ann: User, visit: Callable[..., Page], settings, run_jobs
) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    with serving(lambda request: Response(500, b"no")) as server:
        page = visit(ann, "/me/endpoints")
        page.get_by_label("Address").fill("https://10.0.0.1/in")
        page.get_by_role("button", name="Add").click()
        expect(page.locator(".errorlist")).to_contain_text("10.0.0.1 is not a public address")
        expect(page.get_by_label("Address")).to_have_value("https://10.0.0.1/in")
        page.get_by_label("Address").fill(f"{server.url}/in")
        page.get_by_role("button", name="Add").click()
        secret = page.locator("#secret").input_value()
        assert secret.startswith("whsec_")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == secret
        page.get_by_role("link", name=f"{server.url}/in").click()
        page.get_by_role("link", name="Testing").click()
        page.get_by_role("button", name="Copy the code in Python").click()
        code = page.evaluate("navigator.clipboard.readText()")
        assert code == snippets()["Python"]
        page.get_by_role("link", name="Messages").click()
        page.get_by_role("button", name="Send a test").click()
        expect(page.locator("#log")).to_contain_text("A test is being sent.")
        at_once(1, lambda _: run_jobs(SendTest.name))  # the browser has this thread's event loop
        expect(page.locator("#log li").first).to_contain_text("500")
        server.respond = lambda request: Response(200)
        page.get_by_role("button", name="Send a test").click()
        at_once(1, lambda _: run_jobs(SendTest.name))  # the browser has this thread's event loop
        expect(page.locator("#log li").first).to_contain_text("delivered")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("main")).to_contain_text(
        "Paused. Deliveries wait until you resume the endpoint."
    )
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("main")).to_contain_text("No endpoints yet.")


def test_an_ended_session_leads_to_the_login_and_back(
    ann: User, visit: Callable[..., Page]
) -> None:
    page = visit(ann, "/me/subscriptions")
    page.context.clear_cookies()
    page.locator("summary").nth(1).click()
    page.wait_for_url("**/accounts/login/?next=/me/subscriptions")
    page.fill("#id_username", ann.username)
    page.fill("#id_password", "a long password")
    page.press("#id_password", "Enter")
    page.wait_for_url("**/me/subscriptions")
    expect(page.locator("summary").nth(1)).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_pages_fit_and_can_be_read(
    ann: User, visit: Callable[..., Page], width: int, scheme: Scheme, settings, run_jobs
) -> None:
    settings.VAPID_PRIVATE_KEY, _public = vapid.new_keys()
    settings.VAPID_SUBJECT = "mailto:ops@example.org"
    _something_of_everything(ann)
    at_once(1, lambda _: run_jobs("subscriptions.notify"))  # so that there are webhook messages
    page = visit(ann, "/me/feeds", width=width, scheme=scheme)
    page.get_by_label("Title").fill("A feed of my own " * 5)
    page.get_by_role("button", name="Create feed").click()
    expect(page.locator("#secret")).to_be_visible()
    look_at(page, "feed-made")
    for name in PAGES:
        page.goto(f"/me/{name}")
        if name == "subscriptions":
            _open_family(page)
        look_at(page, name)
    page.goto("/me/subscriptions?q=premiere")
    _cell(page, "stage-premiere", "mail").click()
    expect(page.locator("#editor")).to_contain_text("would have sent")
    look_at(page, "editor", whole=False)
    page.goto("/me/endpoints")
    page.locator(".me-rows a").click()
    expect(page.get_by_role("heading", name="Messages")).to_be_visible()
    page.locator("#log summary").first.click()
    look_at(page, "endpoint")
    page.get_by_role("link", name="Waiting").click()
    expect(page.get_by_role("link", name="Waiting")).to_have_attribute("aria-current", "true")
    look_at(page, "endpoint-waiting")
    page.locator("#log .me-rows a").first.click()
    expect(page.get_by_role("heading", name="Body")).to_be_visible()
    look_at(page, "message")
    for tab in ("Testing", "Recover", "Settings"):
        page.get_by_role("link", name=tab).click()
        expect(page.get_by_role("link", name=tab)).to_have_attribute("aria-current", "page")
        look_at(page, f"endpoint-{tab.lower()}")
    page.get_by_role("link", name="Delete").click()
    expect(page.get_by_role("heading", name="Delete this webhook?")).to_be_visible()
    look_at(page, "endpoint-delete")
    shown = Notification.objects.filter(user=ann).order_by("-pk")[1]  # the newest is hidden
    page.goto(f"/me/why/{shown.event_id}")
    expect(page.get_by_role("heading", name="Why did I get this?")).to_be_visible()
    look_at(page, "why")
    menu = page.get_by_role("button", name="Menu")
    if menu.is_visible():  # on a small screen
        menu.click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    look_at(page, "sign-in")
    url = unsubscribe.event_url(ann, "stage.premiere", FIRST)
    page.goto(url.removeprefix(settings.PUBLIC_URL))
    look_at(page, "unsubscribe")
    page.get_by_role("button", name="Unsubscribe").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    look_at(page, "unsubscribed")


@pytest.fixture(autouse=True)
def _clear_roles() -> object:
    yield
    holders.clear()
    readers.clear()


def test_a_browser_is_added_and_shows_what_is_pushed_to_it(
    ann: User, visit: Callable[..., Page], settings
) -> None:
    """A driven Chromium has no push service: what it answers and sends comes from here."""
    settings.VAPID_PRIVATE_KEY, public = vapid.new_keys()
    settings.VAPID_SUBJECT = "mailto:ops@example.org"
    page = visit(ann, "/me/preferences")
    page.context.grant_permissions(["notifications"])
    page.evaluate(
        """([point]) => {
          PushManager.prototype.subscribe = async (asked) => {
            if (!asked.userVisibleOnly || asked.applicationServerKey.length !== 65) throw "asked";
            const keys = { p256dh: point, auth: "MDEyMzQ1Njc4OWFiY2RlZg" };
            return { toJSON: () => ({ endpoint: "https://push.example.org/1", keys }) };
          };
        }""",
        [public],
    )
    page.get_by_label("Name of this browser").fill("the old laptop")
    page.get_by_role("button", name="Add this browser").click()
    expect(page.locator("main")).to_contain_text("Push notifications are enabled in this browser.")
    expect(page.locator("main")).to_contain_text("the old laptop")
    device = ann.devices.get()
    assert (device.url, device.p256dh) == ("https://push.example.org/1", public)

    devtools = page.context.new_cdp_session(page)
    workers: list[str] = []
    devtools.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: workers.extend(worker["registrationId"] for worker in event["registrations"]),
    )
    devtools.send("ServiceWorker.enable")
    wait_until(lambda: page.wait_for_timeout(20) or workers, what="a registered worker")
    for text in ('{"title": "Faust", "body": "is played", "tag": "t", "link": ""}', "no JSON"):
        message = {"origin": page.url.split("/me/")[0], "registrationId": workers[0], "data": text}
        devtools.send("ServiceWorker.deliverPushMessage", message)
    page.wait_for_function(
        """async () => {
          const [worker] = await navigator.serviceWorker.getRegistrations();
          const notes = await worker.getNotifications();
          const shown = notes.map((note) => `${note.title}|${note.body}`);
          return shown.sort().join() === "Faust|is played,Tailrace|";
        }"""
    )
