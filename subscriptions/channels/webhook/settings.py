import ipaddress
from typing import Annotated

from pydantic import PositiveInt

from environment.settings import AppSettings
from environment.types import Rule, split


class Networks(Rule):
    """Networks of IP addresses, such as 10.0.0.0/8, separated by commas."""

    kind = "list, by commas"

    def read(self, text: str) -> list[str]:
        networks, problems = [], []
        for network in split(text):
            try:
                networks.append(str(ipaddress.ip_network(network)))
            except ValueError as error:
                problems.append(f"{error}; write e.g. 10.0.0.0/8")
        if problems:
            raise ValueError(*problems)
        return networks


class WebhookSettings(AppSettings):
    """Where webhooks may be sent, and how fast."""

    prefixes = ("WEBHOOK_",)

    WEBHOOK_ALLOW_HTTP: bool = False
    """allow webhook endpoints with http://, unencrypted"""
    WEBHOOK_ALLOWED_NETWORKS: Annotated[list[str], Networks()] = []
    """networks that webhooks may reach although they are not public, e.g. 10.20.0.0/16"""
    WEBHOOK_CA_FILE: str = ""
    """PEM file of certificate authorities that webhooks trust in addition to the public ones"""
    WEBHOOK_PER_SECOND: PositiveInt = 20
    """webhooks that are sent to one endpoint per second, at most"""
    DELIVERIES_RETENTION_DAYS: PositiveInt = 30
    """days that the log of webhook deliveries is kept"""
