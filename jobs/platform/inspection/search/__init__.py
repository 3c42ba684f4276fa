"""Search for jobs with one search box: by id, subject, queue, key, error, payload value or time."""
