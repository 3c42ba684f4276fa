"""What the platform asks of records: admin, menu, panels, roles, checks, commands."""
