"""The pages of a signed-in person about photos."""
