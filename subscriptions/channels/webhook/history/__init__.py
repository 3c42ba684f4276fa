"""The messages of an endpoint: list them, send them again, recover what it missed."""
