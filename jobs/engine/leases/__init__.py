"""The claims of this process: their jobs, and the renewal of their leases."""
