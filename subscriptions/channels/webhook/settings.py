from typing import Annotated

from pydantic import PositiveInt

from tailrace.environment.insecure import Insecure, internal_networks
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Networks


class WebhookSettings(AppSettings):
    """Where webhooks may be sent, and how fast."""

    prefixes = ("WEBHOOK_",)
    insecure = (
        Insecure(
            "tailrace.E117",
            "WEBHOOK_ALLOW_HTTP",
            "lets payloads travel unencrypted",
            lambda own: own.WEBHOOK_ALLOW_HTTP,
            "Leave it out; endpoints need an https:// URL.",
        ),
        Insecure(
            "tailrace.E118",
            "WEBHOOK_ALLOWED_NETWORKS",
            "{} contains this machine or its cloud's metadata service",
            lambda own: internal_networks(own.WEBHOOK_ALLOWED_NETWORKS),
            "Name only the networks of the receivers, e.g. 10.20.0.0/16.",
        ),
    )

    WEBHOOK_ALLOW_HTTP: bool = False
    """allow webhook endpoints with http://, unencrypted"""
    WEBHOOK_ALLOWED_NETWORKS: Annotated[list[str], Networks()] = []
    """networks that webhooks may reach although they are not public, e.g. 10.20.0.0/16"""
    WEBHOOK_CA_FILE: str = ""
    """PEM file of certificate authorities that webhooks trust in addition to the public ones"""
    WEBHOOK_PER_SECOND: PositiveInt = 20
    """webhooks that are sent to one endpoint per second, at most"""
    WEBHOOK_HOST_PER_SECOND: PositiveInt = 50
    """webhooks that are sent per second, at most, to one registered domain with all its hosts, or
    to one address, by the endpoints of all users"""
    WEBHOOK_CONFIRM: bool = False
    """send nothing to an endpoint until its URL has answered a challenge"""
    DELIVERIES_RETENTION_DAYS: PositiveInt = 30
    """days that the log of webhook deliveries is kept"""
