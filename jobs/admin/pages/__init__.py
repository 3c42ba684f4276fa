"""What the pages of single jobs and queues show beside the fields of the row."""
