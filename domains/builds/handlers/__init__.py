"""The side effects of build-service events: one module per handler."""
