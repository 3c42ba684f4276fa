"""The channels. Each folder has one, a subclass of `base.Channel`."""
