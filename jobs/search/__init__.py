"""Search for jobs by one box: ids, subjects, queues, keys, errors, values of payloads, times."""
