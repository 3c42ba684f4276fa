"""Who is notified of an event, by which channels, and how the event reads."""
