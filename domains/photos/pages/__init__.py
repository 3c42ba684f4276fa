"""The pages of photos for a signed-in user."""
