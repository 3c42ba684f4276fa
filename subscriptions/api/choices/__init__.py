"""A user's choices: subscriptions, their options, preferences, blocked users."""
