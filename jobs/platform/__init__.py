"""Admin, commands, checks, invariants, panels, and jobs that users request."""
