"""Programs that run inside a process of Tailrace, and the servers that they ask."""
