"""A host project with nothing but tailrace.events, tailrace.jobs and one handler."""
