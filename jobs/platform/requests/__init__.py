"""Jobs that users request through the API, or by *Run now* in the admin."""
