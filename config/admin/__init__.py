"""The parts that all admin pages share: theme, sidebar, security policy and budget."""
