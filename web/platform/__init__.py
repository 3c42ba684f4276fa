"""What the platform asks of the web: access keys, personal data, commands."""
