"""The parts of subscriptions for the platform: menu, panels, personal data, roles, checks,
commands."""
