"""The handlers of protection, one per file."""
