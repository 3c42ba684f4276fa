"""How much memory and disk Tailrace uses."""
