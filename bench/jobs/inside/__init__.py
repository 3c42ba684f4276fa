"""Programs that run inside a process of Tailrace and print JSON."""
