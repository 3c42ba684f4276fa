"""The pages of imports and of the timeline for a signed-in user."""
