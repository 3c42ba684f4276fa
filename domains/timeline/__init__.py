"""Location histories: uploaded files are staged, promoted to a user's timeline, and enriched."""
