"""Statistics of queues and of the workers that serve them."""
