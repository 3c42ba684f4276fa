"""Who may read recorded events, and how personal data in them is erased."""
