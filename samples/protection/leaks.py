"""The leaks of the sample source of `make run`, and the accounts in them. All are made up."""

from tailrace.samples.protection.hibp import HibpService, make_breach

EMAIL, USERNAME, PHONE = "admin@example.org", "sample-admin", "+12125550100"
WATCHED = (("email", EMAIL), ("username", USERNAME), ("phone", PHONE))
"""The values that are watched for the admin."""


def sample_service() -> HibpService:
    """Return a source with these leaks that answers 20 requests a second."""
    service = HibpService(limit=20, retry_after=1)
    service.add(_leak("Sample Shop", "Email addresses", "Passwords", "Physical addresses"), EMAIL)
    service.add(_leak("Sample Airline", "Email addresses", "Partial credit card data"), EMAIL)
    service.add(_leak("Sample Forum", "Usernames", "Website activity"), USERNAME)
    service.add(_leak("Sample Messenger", "Phone numbers", "Names"), PHONE)
    service.pastes[EMAIL] = [
        {
            "Source": "Sample Paste",
            "Id": "a1",
            "Title": "A list of addresses",
            "Date": "2026-01-02T03:04:05Z",
            "EmailCount": 2400,
        }
    ]
    service.passwords = {"password": 9_545_824, "123456": 37_359_195, "sample": 12}
    return service


def _leak(title: str, *data_classes: str) -> dict[str, object]:
    name = title.replace(" ", "")
    text = f"{title} does not exist: this leak is a sample of `make run`."
    return make_breach(name, *data_classes, Title=title, Description=text, PwnCount=120_000)
