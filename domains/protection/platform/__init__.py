"""The parts of protection for the platform: admin, menu, panels, personal data, roles, checks."""
