"""Error pages, changed templates of the admin, and formats of dates and numbers."""
