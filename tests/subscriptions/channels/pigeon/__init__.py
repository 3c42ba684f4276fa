"""An app outside subscriptions that brings a channel: it writes to a file."""
