"""The pages of imports and timelines for signed-in users."""
