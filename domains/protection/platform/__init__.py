"""What the platform asks of protection: admin, menu, panels, personal data, roles, checks."""
