from typing import Annotated

from pydantic import PositiveInt

from tailrace.environment.insecure import Insecure, internal_networks
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Networks


class WebhookSettings(AppSettings):
    """The allowed destinations and rate limits of webhooks."""

    prefixes = ("WEBHOOK_",)
    insecure = (
        Insecure(
            "tailrace.E117",
            "WEBHOOK_ALLOW_HTTP: allows to send payloads unencrypted",
            lambda own: own.WEBHOOK_ALLOW_HTTP,
            "Remove it; endpoints need an https:// URL.",
        ),
        Insecure(
            "tailrace.E118",
            "WEBHOOK_ALLOWED_NETWORKS: {} contains this machine or its cloud's metadata service",
            lambda own: internal_networks(own.WEBHOOK_ALLOWED_NETWORKS),
            "List only the networks of the receivers, e.g. 10.20.0.0/16.",
        ),
    )

    WEBHOOK_ALLOW_HTTP: bool = False
    """allow webhook endpoints with http://, unencrypted"""
    WEBHOOK_ALLOWED_NETWORKS: Annotated[list[str], Networks()] = []
    """networks that webhooks may reach although they are not public, e.g. 10.20.0.0/16"""
    WEBHOOK_CA_FILE: str = ""
    """PEM file of certificate authorities that webhooks trust in addition to the public ones"""
    WEBHOOK_PER_SECOND: PositiveInt = 20
    """webhooks per second to one endpoint, at most"""
    WEBHOOK_HOST_PER_SECOND: PositiveInt = 50
    """webhooks per second, at most, to one registered domain (with all its hosts) or IP address,
    for the endpoints of all users together"""
    WEBHOOK_CONFIRM: bool = False
    """send nothing to an endpoint until its URL has answered a challenge"""
    DELIVERIES_RETENTION_DAYS: PositiveInt = 30
    """days for which the log of webhook deliveries is kept"""
