"""The parts of records for the platform: admin, menu, panels, roles, checks, commands."""
