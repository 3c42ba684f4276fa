"""Channels: the ways to a person. One file here, with one subclass of Channel, is one channel."""

from subscriptions.channels.base import Channel, choices, everything

__all__ = ["Channel", "choices", "everything"]
