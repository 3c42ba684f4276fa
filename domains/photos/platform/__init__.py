"""What the platform asks of photos: admin, menu, panels, personal data, roles, commands."""
