"""The ways to reach a person: each folder here has one channel, a subclass of `base.Channel`."""
