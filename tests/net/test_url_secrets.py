"""What is shown of URLs with secrets in them."""

import pytest

from tailrace.net.url_secrets import json_without_url_secrets, shown_url, without_url_secrets

SLACK = "https://hooks.slack.com/services/T0/B0/"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org", "https://example.org"),
        ("https://example.org/oai/request", "https://example.org/oai/request"),
        ("https://example.org:8443/feed?key=s3cret", "https://example.org:8443/feed?key=***"),
        ("https://example.org?s3cret", "https://example.org?***"),
        ("https://example.org/?a=1&s3cret&b=&c=x=y", "https://example.org/?a=***&***&b=***&c=***"),
        ("https://bot:s3cret@example.org/in", "https://***@example.org/in"),
        ("https://s3cret@example.org/in", "https://***@example.org/in"),
        ("redis://:s3cret@[::1]:6379/0", "redis://***@[::1]:6379/0"),
        ("amqp://u:s@3cret@example.org/v", "amqp://***@example.org/v"),
        ("amqp://u:s?3#cret@example.org/v", "amqp://***@example.org/v"),
        ("https://example.org/@alice/feed", "https://example.org/@alice/feed"),
        ("https://example.org/a#token=s3cret", "https://example.org/a#***"),
        (f"{SLACK}s3cretS3CRETs3cretS3CRET", f"{SLACK}***"),
        (f"{SLACK}secretSECRETsecretSECRET", f"{SLACK}***"),
        ("https://e.org/f/0d4ca2f4-6a9c-4b53-9c39-4ba03c0c3d4b/x", "https://e.org/f/***/x"),
        ("https://e.org/webhooks/12345678901234567/x", "https://e.org/webhooks/12345678901234567/x"),
        ("https://e.org/bot123456:ABC-DEF1234s3cret-zyx/x", "https://e.org/***/x"),
        ("https://e.org/openSUSE:Leap:15.6/python311-django-tasks", "https://e.org/openSUSE:Leap:15.6/python311-django-tasks"),
        ("https://e.org/collections-of-the-library/sets", "https://e.org/collections-of-the-library/sets"),
        ("http://[::1", "http://[::1"),
        ("", ""),
    ],
)  # fmt: skip
def test_secrets_in_a_url_are_not_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown
    assert "3cret" not in shown
    assert without_url_secrets(f"GET {url}") == f"GET {shown}"


def test_each_url_of_a_text_is_shown_without_secrets() -> None:
    text = 'from "ftp://u:p@a.example/x" to <https://b.example/?k=v>: a=b; 10://x'
    shown = 'from "ftp://***@a.example/x" to <https://b.example/?k=***>: a=b; 10://x'
    assert without_url_secrets(text) == shown


def test_json_keeps_its_shape() -> None:
    url = "https://e.org/?k=v"
    value = {"a": [url, {"b": url}, 1, None, True], url: 2.5}
    shown = "https://e.org/?k=***"
    assert json_without_url_secrets(value) == {
        "a": [shown, {"b": shown}, 1, None, True],
        shown: 2.5,
    }
    assert value["a"][0] == url
