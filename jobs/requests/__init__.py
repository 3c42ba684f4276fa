"""Jobs that users request, rather than code: through the API, or by *Run now* in the admin."""
