"""The environment variables of the platform, and rules for their insecure values."""
