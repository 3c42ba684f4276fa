"""Points that devices send while they move. They are visible immediately, without a grace."""
