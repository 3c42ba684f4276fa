"""The handlers of build-service events, one module for each."""
