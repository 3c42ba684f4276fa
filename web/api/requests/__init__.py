"""What is checked before a request is carried out: its body, its values, the rate limit."""
