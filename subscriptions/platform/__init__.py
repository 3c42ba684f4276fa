"""What the platform asks of subscriptions: menu, panels, personal data, roles, checks, commands."""
