"""Points that devices send as they move: seen at once, without a grace."""
