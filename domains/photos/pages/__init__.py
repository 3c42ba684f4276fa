"""The photo pages for signed-in users."""
