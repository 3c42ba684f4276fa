"""What the platform asks of timeline: admin, menu, panels, personal data."""
