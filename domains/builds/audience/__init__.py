"""Who may read an event of builds, and who receives it."""
