"""`make siege`: attacks on the running platform, while /healthz is asked all the time."""
