"""Pages of what a user chooses: subscriptions, preferences, blocked users, browsers with push."""
