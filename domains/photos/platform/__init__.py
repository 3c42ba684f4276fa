"""The parts of photos for the platform: admin, menu, panels, personal data, roles, commands."""
