"""What a user chooses: subscriptions, their options, preferences, blocked users."""
