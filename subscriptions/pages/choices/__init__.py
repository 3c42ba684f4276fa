"""The pages of a user's choices: subscriptions, preferences, blocked users, browsers with push."""
